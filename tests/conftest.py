"""What all tests share: hypothesis for busy machines, and a rate limit that no test has used up for the next."""

import pytest
from django.core.cache import cache
from hypothesis import HealthCheck, settings

# How fast examples are made says how busy the machine is, not whether the code is right.
settings.register_profile("gm_chat", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("gm_chat")


@pytest.fixture(autouse=True)
def _nothing_is_counted_yet() -> None:
    """All anonymous visitors of the tests share an address, and the tests of a process a cache."""
    cache.clear()
