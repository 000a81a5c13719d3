import sys
from collections.abc import AsyncIterator, Mapping
from types import ModuleType
from typing import Any, ClassVar

import pytest

from gm_chat.host import PluginHost
from gm_chat.host.providers import EXTRAS, ProviderNotInstalledError, resolve
from gm_chat.plugin import ProviderSpec, hookimpl
from gm_chat.providers.base import BaseLLMProvider, ChatEvent, CheckWarning, DoneEvent
from gm_chat.settings import ChatConfigurationError
from gm_chat.testing import make_host
from gm_chat.testing.hosts import FakeDistribution, FakeEntryPoint


class Minimal:
    """The specification's example: nothing but ``complete``."""

    async def complete(self, messages: Any, tools: Any) -> AsyncIterator[ChatEvent]:
        yield DoneEvent()


class Full(BaseLLMProvider):
    capabilities = frozenset({"tool_choice"})
    required_extra = "chat-acme"
    checked: ClassVar[list[Any]] = []

    @classmethod
    def check_configuration(cls, config: Mapping[str, Any] | None = None) -> list[CheckWarning]:
        cls.checked.append(config)
        return [CheckWarning(id="acme.W001", message="m", hint="h")]


class ChecksWithoutArguments(Minimal):
    @staticmethod
    def check_configuration() -> None:
        raise ImportError("acme is not installed")


class ChecksOnInstances(Minimal):
    def check_configuration(self) -> None:
        raise ValueError(type(self).__name__)


class NoProvider:
    pass


HERE = "acme_providers"
SPEC = ProviderSpec(name="acme", build=Full)


@pytest.fixture(autouse=True)
def module(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    made = ModuleType(HERE)
    for thing in (Minimal, Full, ChecksWithoutArguments, ChecksOnInstances, NoProvider):
        setattr(made, thing.__name__, thing)
    made.instance = Minimal()  # type: ignore[attr-defined]  # a module made by hand
    monkeypatch.setitem(sys.modules, HERE, made)
    return made


@pytest.fixture
def host() -> PluginHost:
    plugin = ModuleType("plugin")
    plugin.gm_chat_providers = hookimpl(lambda: [SPEC])  # type: ignore[attr-defined]  # as above
    return make_host(acme=plugin)


def test_a_registered_name(host: PluginHost) -> None:
    assert resolve("acme", host) is SPEC


async def test_a_class_with_nothing_but_complete_runs(host: PluginHost) -> None:
    spec = resolve(f"{HERE}.Minimal", host)
    assert (spec.name, spec.capabilities, spec.required_extra, spec.check) == (
        f"{HERE}.Minimal",
        frozenset(),
        None,
        None,
    )
    assert [event async for event in spec.build(None).complete([], [])] == [DoneEvent()]


@pytest.mark.parametrize("config", [{"model": "m"}, {}])
def test_a_class_without_from_config_takes_no_configuration(host: PluginHost, config: dict[str, str]) -> None:
    with pytest.raises(ChatConfigurationError, match=r"acme_providers.Minimal' has no from_config"):
        resolve(f"{HERE}.Minimal", host).build(config)


def test_a_class_with_everything(host: PluginHost) -> None:
    spec = resolve(f"{HERE}.Full", host)
    assert spec.capabilities == {"tool_choice"}
    assert spec.required_extra == "chat-acme"
    built = spec.build({"model": "m"})
    assert isinstance(built, Full)
    assert built.provider_config == {"model": "m"}
    assert spec.check is not None
    Full.checked.clear()
    assert [warning.id for warning in spec.check({"model": "m"}) or ()] == ["acme.W001"]
    spec.check(None)
    assert Full.checked == [{"model": "m"}, None]


def test_checks_may_take_no_arguments_or_need_an_instance(host: PluginHost) -> None:
    spec = resolve(f"{HERE}.ChecksWithoutArguments", host)
    assert spec.check is not None
    with pytest.raises(ImportError, match="acme is not installed"):
        spec.check({"model": "m"})
    spec = resolve(f"{HERE}.ChecksOnInstances", host)
    assert spec.check is not None
    with pytest.raises(ValueError, match="ChecksOnInstances"):
        spec.check(None)


def test_the_reference_s_paths_are_ours(host: PluginHost, monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("gm_chat.acme")
    module.Minimal = Minimal  # type: ignore[attr-defined]  # a module made by hand
    monkeypatch.setitem(sys.modules, "gm_chat.acme", module)
    assert resolve("general_manager.chat.acme.Minimal", host).name == "gm_chat.acme.Minimal"


@pytest.mark.parametrize(("name", "extra"), EXTRAS.items())
def test_a_known_provider_that_is_not_installed_says_what_to_type(name: str, extra: str) -> None:
    with pytest.raises(ProviderNotInstalledError, match=rf"pip install 'gm-chat\[{extra}\]'") as caught:
        resolve(name, make_host())
    assert isinstance(caught.value, ImportError)
    assert isinstance(caught.value, ChatConfigurationError)


def test_a_misspelt_name_gets_the_nearest(host: PluginHost) -> None:
    for wrong, right in (("acmee", "acme"), ("olama", "ollama")):
        with pytest.raises(ChatConfigurationError, match=rf"'{wrong}'.*Did you mean '{right}'\?"):
            resolve(wrong, host)


def test_a_provider_whose_plugin_does_not_run_says_so() -> None:
    host = make_host({"ollama": ImportError("no")}, strict=False)
    with pytest.raises(
        ChatConfigurationError, match=r"'ollama' is not available: plugin 'ollama' \(test-ollama 0\): imp"
    ):
        resolve("ollama", host)


def test_a_provider_that_two_plugins_offer_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def offering() -> ModuleType:
        plugin = ModuleType("plugin")
        plugin.gm_chat_providers = hookimpl(lambda: [SPEC])  # type: ignore[attr-defined]  # a module made by hand
        return plugin

    host = make_host(one=offering(), two=offering(), strict=False)
    with pytest.raises(ChatConfigurationError, match="the name 'acme' is offered by 'one' and 'two'"):
        resolve("acme", host)


def test_a_provider_whose_plugin_is_disabled_says_so() -> None:
    entry_point = FakeEntryPoint("ollama", None, FakeDistribution("acme-ollama"))
    host = PluginHost.build(core=[], disabled=["ollama"], entry_points=[entry_point])
    with pytest.raises(ChatConfigurationError, match="'ollama' is not available: its plugin is disabled"):
        resolve("ollama", host)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("acme_nothing.Provider", "there is no module 'acme_nothing'"),
        (f"{HERE}.sub.Provider", rf"there is no module '{HERE}.sub'"),
        (f"{HERE}.Minmal", "has no 'Minmal'. Did you mean 'Minimal'?"),
        (f"{HERE}.NoProvider", "has no method complete"),
        (f"{HERE}.instance", "is a Minimal, not a class"),
    ],
)
def test_a_wrong_path_says_which_part(path: str, message: str, host: PluginHost) -> None:
    with pytest.raises(ChatConfigurationError) as caught:
        resolve(path, host)
    assert message in str(caught.value)
    assert not isinstance(caught.value, ImportError)


def test_a_missing_sdk_stays_an_import_error(host: PluginHost, module: ModuleType) -> None:
    class SdkMissingError(ImportError):
        pass

    def lazily(name: str) -> Any:
        raise SdkMissingError(name)

    module.__getattr__ = lazily  # type: ignore[method-assign]  # PEP 562
    with pytest.raises(SdkMissingError):
        resolve(f"{HERE}.Lazy", host)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import a_module_that_nobody_has", ModuleNotFoundError),
        ("import sys\nsys.exit(1)", ChatConfigurationError),
        ("def broken(:", ChatConfigurationError),
    ],
)
def test_a_module_that_fails_to_import(
    source: str, expected: type[Exception], host: PluginHost, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "acme_failing.py").write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(expected):
        resolve("acme_failing.Provider", host)
