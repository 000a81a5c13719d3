"""What all tests share: hypothesis for busy machines."""

from hypothesis import HealthCheck, settings

# How fast examples are made says how busy the machine is, not whether the code is right.
settings.register_profile("gm_chat", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("gm_chat")
