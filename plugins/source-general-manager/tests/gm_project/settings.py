"""The shop's settings with GeneralManager in front of its tables."""

from testproject.settings import *  # noqa: F403 - settings modules are inherited so
from testproject.settings import DATABASES, INSTALLED_APPS

INSTALLED_APPS = [
    *(name for name in INSTALLED_APPS if name not in ("testproject.chinook", "testproject.defog")),
    "simple_history",
    "general_manager",
    "gm_project.shop_managers",
]
DATABASE_ROUTERS: list[str] = []
# The histories of the shop's models have no migration; made together, all tables find those that they refer to.
MIGRATION_MODULES = {name.split(".")[-1]: None for name in INSTALLED_APPS}

AUTOCREATE_GRAPHQL = True
GRAPHQL_URL = "graphql/"
DATABASES = {"default": DATABASES["default"]}
GM_CHAT = {
    "enabled": True,
    "provider": "gm_chat.testing.ScriptedProvider",
    "provider_config": {"max_retries": 0},
    "allowed_mutations": ["createPart", "updatePart", "deletePart", "createSite"],
}
