"""What ``manage.py check`` reports, and that nothing stops it from reporting."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from django.apps import apps
from django.test import override_settings
from testproject.checking import CHAT, EchoPlugin

from gm_chat import checks
from gm_chat.managers import registry
from gm_chat.managers.api import ManagerInfo
from gm_chat.plugin import CheckResult
from gm_chat.providers.base import CheckWarning
from gm_chat.settings import ChatConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable

Run = Any


def test_a_working_chat_has_no_findings(run: Run) -> None:
    assert run() == {}


def test_a_chat_that_is_off_is_not_judged(run: Run) -> None:
    assert run(chat={"permission": "no.such.thing", "provider": "nobody"}, managers=ValueError("broken")) == {}


class TestSettings:
    @pytest.mark.parametrize(
        "chat", [{"max_results": 0}, {"enabled": False, "provder": "x"}, {"enabled": True, "permission": "no.such"}]
    )
    def test_invalid_ones_are_errors(self, run: Run, chat: dict[str, Any]) -> None:
        found = run(chat=chat)
        assert list(found) == ["E002"]
        assert list(chat)[-1] in found["E002"].msg
        assert found["E002"].is_serious()

    def test_every_fault_is_an_error_of_its_own(self) -> None:
        with override_settings(GM_CHAT={"max_results": 0, "ttl_hours": 0}):
            assert [item.id for item in checks.check_chat()] == ["gm_chat.E002"] * 2

    def test_what_is_no_mapping_is_told(self, run: Run) -> None:
        with override_settings(GENERAL_MANAGER=5):
            assert list(run()) == ["E002"]

    @pytest.mark.parametrize("chat", [CHAT, {}, {"max_results": 0}])
    def test_misspelt_variables_are_named(
        self, run: Run, monkeypatch: pytest.MonkeyPatch, chat: dict[str, Any]
    ) -> None:
        monkeypatch.setenv("GM_CHAT_PROVDER", "sk-42")
        found = run(chat=chat)["W001"]
        assert "GM_CHAT_PROVDER" in found.msg
        assert found.hint == "Did you mean 'provider'?"
        assert "sk-42" not in str(found)

    def test_keys_of_a_newer_general_manager_are_a_warning(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        from django.conf import settings

        monkeypatch.setattr(settings, "INSTALLED_APPS", [*settings.INSTALLED_APPS, "general_manager"])
        with override_settings(GENERAL_MANAGER={"CHAT": {"max_rounds": 1}}):
            found = run()
        assert "['max_rounds']" in found["W002"].msg

    def test_only_existing_mutations_can_be_allowed(self, run: Run) -> None:
        found = run(chat={**CHAT, "allowed_mutations": ["createPart", "createPrat"]})["E002"]
        assert found.msg == str(ChatConfigurationError.unknown_allowed_mutations("createPrat"))
        assert found.hint == "createPrat: Did you mean 'createPart'?"
        assert run(chat={**CHAT, "allowed_mutations": ["createPart"]}) == {}


class TestSchema:
    def test_no_manager_is_an_error_with_the_lines_to_write(self, run: Run) -> None:
        found = run(managers=())["E001"]
        assert found.msg == str(ChatConfigurationError.missing_graphql_schema())
        model = next(item for item in apps.get_models() if item.__module__.startswith("testproject."))
        assert found.hint is not None
        assert "chat_managers.py" in found.hint
        assert f"from {model.__module__} import {model.__name__}" in found.hint
        assert f"{model.__name__}Manager = expose({model.__name__})" in found.hint

    def test_a_project_without_models_is_told_to_write_some(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(apps, "get_models", lambda: [apps.get_model("auth.User")])
        assert "an app that has models" in str(run(managers=())["E001"].hint)

    def test_a_source_that_fails_is_an_error(self, run: Run) -> None:
        found = run(managers=ValueError("the declaration of PartManager is wrong"))
        assert list(found) == ["E001"]
        assert "ValueError: the declaration of PartManager is wrong" in found["E001"].msg

    def test_so_is_a_schema_that_graphql_refuses(self, run: Run) -> None:
        nameless = ManagerInfo(name="EmptyManager", description="", fields=())
        assert "E001" in run(managers=(nameless,))

    def test_fields_that_look_like_secrets_are_warned_about(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(registry, "warnings", lambda: [("PartManager", "api_token")])
        assert "PartManager shows the field 'api_token'" in run()["W003"].msg


def refuse(error: Exception) -> Callable[[object], None]:
    def check(config: object) -> None:
        raise error

    return check


class TestProvider:
    def test_a_missing_dependency_comes_with_the_line_that_installs_it(self, run: Run) -> None:
        found = run(EchoPlugin(check=refuse(ImportError("no module", name="echo_sdk"))))["E003"]
        assert found.hint == 'python -m pip install "gm-chat[chat-echo]"'

    def test_without_an_extra_the_line_names_the_package(self, run: Run) -> None:
        found = run(EchoPlugin(check=refuse(ImportError("no module", name="echo_sdk")), extra=None))["E003"]
        assert found.hint == "python -m pip install echo_sdk"
        found = run(EchoPlugin(check=refuse(ImportError("no module")), extra=None))["E003"]
        assert found.hint is None

    @pytest.mark.parametrize("provider", ["anthropic", "ollama"])
    def test_a_provider_whose_plugin_is_absent_can_be_installed(self, run: Run, provider: str) -> None:
        found = run(chat={**CHAT, "provider": provider})["E003"]
        assert found.hint == f'python -m pip install "gm-chat[chat-{provider}]"'

    def test_a_configuration_that_cannot_work_is_e002(self, run: Run) -> None:
        found = run(EchoPlugin(check=refuse(ValueError("the base_url has no host"))))["E002"]
        assert "'echo' cannot work as it is configured: the base_url has no host" in found.msg

    @pytest.mark.parametrize(
        ("config", "expected"),
        [
            ({"max_retries": -1}, "['max_retries'] is -1: expected a whole number, 0 or more"),
            ({"max_retries": "2"}, "['max_retries'] is of type str"),
            ({"timeout_seconds": 0}, "['timeout_seconds'] is 0: expected a number of seconds above 0"),
            ({"stream_timeout_seconds": float("inf")}, "['stream_timeout_seconds'] is inf"),
        ],
    )
    def test_so_is_one_that_the_host_cannot_read(self, run: Run, config: Any, expected: str) -> None:
        assert expected in run(EchoPlugin(), chat={**CHAT, "provider_config": config})["E002"].msg

    def test_what_may_be_right_elsewhere_is_a_warning(self, run: Run) -> None:
        told = CheckWarning(id="acme.W001", message="there is no key.", hint="export ACME_KEY=...")
        found = run(EchoPlugin(check=lambda _: [told, "something else"]))
        assert list(found) == ["acme.W001"]
        assert found["acme.W001"].msg == "The chat's provider 'echo' may not work: there is no key."
        assert (found["acme.W001"].hint, found["acme.W001"].is_serious()) == ("export ACME_KEY=...", False)

    @pytest.mark.parametrize("answer", [True, "fine", [], {}, 1])
    def test_other_answers_say_nothing(self, run: Run, answer: object) -> None:
        assert run(EchoPlugin(check=lambda _: answer)) == {}

    def test_any_other_refusal_is_e004(self, run: Run) -> None:
        found = run(EchoPlugin(check=refuse(RuntimeError("the SDK is another's"))))["E004"]
        assert "RuntimeError: the SDK is another's" in found.msg
        assert "Installed: echo." in str(found.hint)

    @pytest.mark.parametrize("provider", ["ecko", "no_such_package.Provider", "gm_chat.testing.NoProvider", "os.sep"])
    def test_a_provider_that_does_not_exist_is_e004(self, run: Run, provider: str) -> None:
        found = run(chat={**CHAT, "provider": provider})
        assert list(found) == ["E004"]
        assert provider.rpartition(".")[2] in found["E004"].msg or "no_such_package" in found["E004"].msg

    def test_a_provider_that_exits_does_not_end_the_check(self, run: Run) -> None:
        def leave(config: object) -> None:
            sys.exit(1)

        assert "SystemExit" in run(EchoPlugin(check=leave))["E004"].msg

    def test_it_is_checked_with_a_plain_copy_of_its_configuration(self, run: Run) -> None:
        seen: list[Any] = []
        run(EchoPlugin(check=seen.append), chat={**CHAT, "provider_config": {"options": {"stop": ["."]}}})
        assert seen == [{"options": {"stop": ["."]}}]
        assert type(seen[0]["options"]) is dict

    def test_profiles_in_use_are_checked_and_others_are_not(self, run: Run) -> None:
        seen: list[Any] = []
        profiles = {
            name: {"provider": "echo", "provider_config": {"model": name}, "trust_group": "us"}
            for name in ("fast", "strong", "spare")
        }
        roles = dict.fromkeys(("planner", "complex_executor", "synthesizer", "fallback_executor"), "strong")
        planned = {"enabled": True, "roles": {**roles, "simple_executor": "fast"}}
        chat = {**CHAT, "provider_profiles": profiles, "planned": planned}
        run(EchoPlugin(check=seen.append), chat=chat)
        assert seen == [{}, {"model": "fast"}, {"model": "strong"}]
        run(EchoPlugin(check=seen.append), chat={**chat, "planned": {**planned, "enabled": False}})
        assert seen[3:] == [{}]

    def test_a_profile_s_provider_takes_a_configuration_of_its_own(self, run: Run) -> None:
        bare = "testproject.checking.Bare"
        assert run(EchoPlugin(), chat={**CHAT, "provider": bare}) == {}
        profiles = {"a": {"provider": bare, "trust_group": "us"}}
        found = run(EchoPlugin(), chat={**CHAT, "provider_profiles": profiles, "fallback_profile": "a"})
        assert "provider_profiles['a']" in found["E002"].msg
        assert "has no from_config" in found["E002"].msg

    def test_so_is_the_fallback(self, run: Run) -> None:
        seen: list[Any] = []
        profiles: dict[str, Any] = {
            name: {"provider": "echo", "provider_config": {"model": name}, "trust_group": "us"} for name in "ab"
        }
        chat = {**CHAT, "provider_profiles": profiles, "fallback_profile": "b"}
        run(EchoPlugin(check=seen.append), chat=chat)
        assert seen == [{}, {"model": "b"}]
        profiles["b"]["provider"] = "nobody"
        assert "provider_profiles['b'] 'nobody'" in run(EchoPlugin(), chat=chat)["E004"].msg
        profiles["b"]["provider_config"] = {"max_retries": 0.5}
        profiles["b"]["provider"] = "echo"
        assert "provider_profiles['b'] 'echo'" in run(EchoPlugin(), chat=chat)["E002"].msg


class TestPlugins:
    def test_a_broken_one_is_named_and_the_rest_still_checked(self, run: Run) -> None:
        found = run(weather=SyntaxError("bad"), managers=())
        assert {"E010", "E001"} <= set(found) or {"W010", "E001"} <= set(found)
        message = found.get("E010") or found["W010"]
        assert "weather" in message.msg
        assert "test-weather" in message.msg

    def test_plugins_add_findings(self, run: Run) -> None:
        result = CheckResult(id="acme.W1", level="warning", message="the key expires soon", hint="renew it")
        found = run(EchoPlugin(findings=[result]))["acme.W1"]
        assert (found.msg, found.hint, found.is_serious()) == ("the key expires soon", "renew it", False)

    def test_a_host_that_cannot_be_built_is_told(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def broken() -> object:
            raise RuntimeError("no plugins today")

        monkeypatch.setattr(checks, "get_runtime", broken)
        found = checks.check_chat()
        assert [item.id for item in found] == ["gm_chat.E001"]
        assert "no plugins today" in found[0].msg


CHECK = """
import django, sys
django.setup()
from django.core.management import call_command
from django.core.management.base import SystemCheckError
try:
    call_command("check")
except SystemCheckError as error:
    print(error)
print("LOADED", *sorted({"openai", "ollama"} & set(sys.modules)))
"""


@pytest.mark.parametrize(
    ("provider", "loaded"), [("openai", "LOADED openai"), ("ollama", "LOADED ollama"), ("nobody", "LOADED")]
)
def test_only_the_chosen_provider_s_sdk_is_imported(provider: str, loaded: str) -> None:
    for package in ("gm_chat_provider_openai", "gm_chat_provider_ollama"):
        pytest.importorskip(package, reason="the provider plugins are not installed")
    output = manage_check(GM_CHAT_PROVIDER=provider)
    assert output.splitlines()[-1] == loaded
    assert ("gm_chat.E004" in output) == (provider == "nobody")


def test_a_build_without_the_key_passes() -> None:
    pytest.importorskip("gm_chat_provider_openai", reason="the provider plugins are not installed")
    output = manage_check(GM_CHAT_PROVIDER="openai", OPENAI_API_KEY="", OPENAI_BASE_URL="")
    assert "SystemCheckError" not in output
    assert "gm_chat.E" not in output


def test_broken_settings_do_not_stop_the_command() -> None:
    assert "gm_chat.E002" in manage_check(GM_CHAT_MAX_RESULTS="none at all")


def manage_check(**variables: str) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GM_CHAT_")}
    environment |= {"DJANGO_SETTINGS_MODULE": "testproject.settings", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", CHECK]
    return subprocess.run(
        command, check=True, env=environment | variables, stdout=subprocess.PIPE, text=True, timeout=60
    ).stdout
