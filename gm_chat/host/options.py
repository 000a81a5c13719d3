"""A plugin's own settings, validated by the plugin and reported without a single configured value."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any, Final

from pydantic_core import ValidationError

from gm_chat.host.problems import Failed, attempt
from gm_chat.plugin.errors import PluginConfigurationError
from gm_chat.providers.base import SecretMapping
from gm_chat.settings import suggestion

__all__ = ["read_options"]

_SHORTEST_MASKED: Final = 4


def read_options(plugin: object, raw: object) -> Any:
    """Give ``raw`` to the plugin's ``Options`` and return what that made of it.

    Without ``Options`` the result is a read-only mapping whose ``repr`` hides secrets. Raises
    :class:`~gm_chat.plugin.PluginConfigurationError`, whose message names keys, never values.
    """
    if not isinstance(raw, Mapping):
        raise PluginConfigurationError(f"its settings must be a mapping, not a {type(raw).__name__}.")
    bad_keys = [key for key in raw if not isinstance(key, str)]
    if bad_keys:
        raise PluginConfigurationError(f"the key {bad_keys[0]!r} of its settings is not a string.")
    options = getattr(plugin, "Options", None)
    if options is None:
        return SecretMapping(raw)
    _refuse_unknown_keys(options, raw)
    made = attempt(lambda: options(**raw))
    if isinstance(made, Failed):
        # `from None`: the original quotes values, and tracebacks end up in logs.
        raise PluginConfigurationError(f"its settings are invalid: {_safe_text(made, raw)}") from None
    return made


def _refuse_unknown_keys(options: Any, raw: Mapping[str, Any]) -> None:
    signature = attempt(lambda: inspect.signature(options))
    if isinstance(signature, Failed):
        return  # e.g. a callable written in C: it judges the keys itself
    parameters = signature.parameters.values()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return
    known = [parameter.name for parameter in parameters if parameter.kind is not parameter.POSITIONAL_ONLY]
    for key in raw:
        if key not in known:
            raise PluginConfigurationError(f"its settings have an unknown key {key!r}. {suggestion(key, known)}")


def _safe_text(failed: Failed, raw: Mapping[str, Any]) -> str:
    match failed.error:
        case ValidationError() as error:
            found = error.errors(include_url=False, include_input=False, include_context=False)
            text = "; ".join(f"{'.'.join(map(str, item['loc'])) or 'options'}: {item['msg']}" for item in found)
        case error:
            text = f"{type(error).__name__}: {failed.text}"
    # What a validator says about a value often quotes it, so every configured text is taken out again, longest first.
    for value in sorted(set(_texts(raw)), key=len, reverse=True):
        text = text.replace(repr(value), "<hidden>").replace(value, "<hidden>")
    return text


def _texts(value: object) -> Iterator[str]:
    match value:
        case Mapping():
            for item in value.values():
                yield from _texts(item)
        case list() | tuple() | set() | frozenset():
            for item in value:
                yield from _texts(item)
        case None | bool():
            return
        case _ if len(str(value)) >= _SHORTEST_MASKED:
            yield str(value)
