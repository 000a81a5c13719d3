"""A Django project over the tables, as each of the bench's processes sets it up."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType
from typing import Any

import django
from django.conf import settings

__all__ = ["set_up"]


def set_up(database: dict[str, Any], apps: list[str]) -> None:
    if database["ENGINE"].endswith("mysql") and importlib.util.find_spec("MySQLdb") is None:
        import pymysql

        pymysql.version_info = (2, 2, 7, "final", 0)  # Django asks for mysqlclient, whose DB-API this is
        pymysql.install_as_MySQLdb()
    urls = ModuleType("querybench_urls")
    urls.urlpatterns = []  # type: ignore[attr-defined]
    sys.modules["querybench_urls"] = urls
    settings.configure(
        DATABASES={"default": database},
        INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth", "querybench.store", *apps],
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        ROOT_URLCONF="querybench_urls",
        SECRET_KEY="for a benchmark",
        USE_TZ=True,
        AUTOCREATE_GRAPHQL=True,  # GeneralManager's
        STRAWBERRY_DJANGO={"PAGINATION_MAX_LIMIT": 200},
    )
    django.setup()
