"""Being ready: cheap, and what it puts in place."""

import os
import subprocess
import sys

from django.apps import apps
from django.core.checks import run_checks
from django.core.checks.registry import registry
from django.test import override_settings

from gm_chat.providers.base import BaseLLMProvider

SDKS = ("openai", "ollama", "anthropic", "google.genai", "httpx", "httpx2")


def run_python(code: str) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GM_CHAT_")}
    environment |= {"DJANGO_SETTINGS_MODULE": "testproject.settings", "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment, timeout=60)


def test_setup_imports_neither_an_sdk_nor_graphql_nor_what_a_first_request_needs() -> None:
    unwanted = (
        *SDKS,
        "graphql",
        "pydantic",
        "pydantic_settings",
        "gm_chat.settings",
        "gm_chat.wiring",
        "testproject.urls",
    )
    run_python(
        "import sys, django; django.setup();"
        f"loaded = sorted(set({unwanted!r}) & set(sys.modules)); assert not loaded, loaded"
    )


def test_importing_the_package_imports_nothing_else() -> None:
    unwanted = ("django", "pluggy", "pydantic", *SDKS)
    run_python(f"import sys, gm_chat; assert not set({unwanted!r}) & set(sys.modules)")


def test_a_provider_without_arguments_reads_the_chat_s_configuration() -> None:
    with override_settings(GM_CHAT={"provider_config": {"model": "m", "options": {"stop": ["."]}}}):
        config = BaseLLMProvider().provider_config
        assert config == {"model": "m", "options": {"stop": ["."]}}
        config["options"]["stop"].append("!")
        assert BaseLLMProvider().provider_config["options"]["stop"] == ["."]
    assert BaseLLMProvider.from_config({}).provider_config == {}


def test_the_checks_are_registered() -> None:
    assert registry.tag_exists("gm_chat")


def test_checks_of_other_apps_do_not_run_ours() -> None:
    with override_settings(GM_CHAT={"max_results": 0}):
        assert [item.id for item in run_checks([apps.get_app_config("gm_chat")], tags=["gm_chat"])] == ["gm_chat.E002"]
        assert run_checks([apps.get_app_config("auth")], tags=["gm_chat"]) == []
