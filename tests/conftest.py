"""What all tests share: hypothesis for busy machines, and a MySQL driver that needs no compiler."""

import pymysql
from hypothesis import HealthCheck, settings

# How fast examples are made says how busy the machine is, not whether the code is right.
settings.register_profile("gm_chat", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("gm_chat")

# Django asks for mysqlclient, which must be compiled; PyMySQL speaks the same DB-API.
pymysql.version_info = (2, 2, 7, "final", 0)
pymysql.install_as_MySQLdb()
