"""From what the setting ``provider`` says to something that can be built: a plugin's name, or a class by its path."""

from __future__ import annotations

import importlib
import inspect
from typing import TYPE_CHECKING, Any, Final

from gm_chat.host.problems import Failed, attempt
from gm_chat.host.registration import PROVIDERS
from gm_chat.plugin.specs import ProviderSpec
from gm_chat.settings import ChatConfigurationError, canonical_path, suggestion

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gm_chat.host.facade import PluginHost
    from gm_chat.providers.base import Provider

__all__ = ["EXTRAS", "ProviderNotInstalledError", "resolve"]

EXTRAS: Final[Mapping[str, str]] = {
    "ollama": "chat-ollama",
    "openai": "chat-openai",
    "anthropic": "chat-anthropic",
    "google": "chat-google",
    "offline": "chat-offline",
}
"""The extra of gm-chat that brings the provider of each name."""


class ProviderNotInstalledError(ChatConfigurationError, ImportError):
    """The setting names a provider whose plugin exists, but not here. An ``ImportError``, as check E003 wants it."""


def resolve(name_or_path: str, host: PluginHost) -> ProviderSpec:
    """Find the provider that a setting names.

    A registered name wins. A dotted path is imported; ``general_manager.chat.X`` is read as ``gm_chat.X``. The class
    needs nothing but ``complete``: without ``capabilities`` it has none, and it is built without arguments unless a
    configuration is given, be it empty, which it then must take through ``from_config``.

    Raises ``ImportError`` when something is not installed, as which the class's own SDK counts, and
    :class:`~gm_chat.settings.ChatConfigurationError` for everything else.
    """
    if name_or_path in host.providers:
        return host.providers[name_or_path]
    path = canonical_path(name_or_path)
    if "." not in path:
        raise _unknown_name(path, host)
    return _spec_of(path, _import(path))


def _unknown_name(name: str, host: PluginHost) -> ChatConfigurationError:
    for problem in host.problems:
        if problem.plugin == name or (problem.hook == PROVIDERS.hook and repr(name) in problem.message):
            return ChatConfigurationError(f"The provider {name!r} is not available: {problem}")
    if any(record.name == name and record.state == "disabled" for record in host.plugins):
        return ChatConfigurationError(
            f"The provider {name!r} is not available: its plugin is disabled by the settings."
        )
    if name in EXTRAS:
        return ProviderNotInstalledError(
            f"The provider {name!r} is not installed. Type: pip install 'gm-chat[{EXTRAS[name]}]'"
        )
    hint = suggestion(name, [*host.providers, *EXTRAS])
    return ChatConfigurationError(f"No plugin offers the provider {name!r}, and it is no dotted class path. {hint}")


def _import(path: str) -> type[Any]:
    module_name, _, class_name = path.rpartition(".")
    module = attempt(lambda: importlib.import_module(module_name))
    if isinstance(module, Failed):
        raise _import_error(path, module_name, module) from module.error
    found = attempt(lambda: getattr(module, class_name))
    match found:
        case Failed(error=AttributeError()):
            classes = [name for name, value in vars(module).items() if isinstance(value, type)]
            raise ChatConfigurationError(
                f"The provider {path!r} does not exist: {module_name!r} has no {class_name!r}. "
                + suggestion(class_name, [*classes, *getattr(module, "__all__", ())])
            )
        case Failed():
            raise _import_error(path, module_name, found) from found.error
        case type() if callable(getattr(found, "complete", None)):
            return found
        case type():
            raise ChatConfigurationError(f"The provider {path!r} has no method complete(messages, tools).")
        case _:
            raise ChatConfigurationError(f"The provider {path!r} is a {type(found).__name__}, not a class.")


def _import_error(path: str, module_name: str, failed: Failed) -> Exception:
    match failed.error:
        case ModuleNotFoundError(name=str(missing)) if f"{module_name}.".startswith(f"{missing}."):
            return ChatConfigurationError(f"The provider {path!r} does not exist: there is no module {missing!r}.")
        case ImportError() as error:
            return error
        case _:
            return ChatConfigurationError(f"The provider {path!r} cannot be imported: {failed}")


def _spec_of(path: str, provider: type[Any]) -> ProviderSpec:
    def build(config: Mapping[str, Any] | None) -> Provider:
        if config is None:
            return provider()  # type: ignore[no-any-return]  # what _import found has `complete`
        from_config = getattr(provider, "from_config", None)
        if from_config is None:
            raise ChatConfigurationError(
                f"The provider {path!r} has no from_config(config), so it cannot be given a configuration of its own, "
                "which in provider_profiles is {} at the least."
            )
        built: Provider = from_config(config)
        return built

    def check(config: Mapping[str, Any] | None) -> Any:
        static = inspect.getattr_static(provider, "check_configuration")
        bound = isinstance(static, classmethod | staticmethod)
        target = (provider if bound else build(config)).check_configuration  # type: ignore[union-attr]  # found above
        return target(config) if inspect.signature(target).parameters else target()

    return ProviderSpec(
        name=path,
        build=build,
        capabilities=frozenset(getattr(provider, "capabilities", ())),
        required_extra=getattr(provider, "required_extra", None),
        check=check if hasattr(provider, "check_configuration") else None,
    )
