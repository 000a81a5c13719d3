"""Settings from ``GM_CHAT_*`` environment variables, taken apart by pydantic-settings.

``GM_CHAT_MAX_RESULTS=50`` sets ``max_results``, ``GM_CHAT_RATE_LIMIT__REQUESTS=10`` sets ``rate_limit["requests"]``.
Lists are JSON or separated by commas, mappings are JSON, ``null`` means ``None``.
"""

from __future__ import annotations

import json
import os
import typing
from typing import TYPE_CHECKING, Any, Final

from pydantic import TypeAdapter, ValidationError, create_model

from gm_chat.settings.error import ChatConfigurationError
from gm_chat.settings.model import ChatSettings, PriceSettings, ProfileSettings, Section
from gm_chat.settings.sources import ENVIRONMENT, Source, UnknownName, unknown_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pydantic.fields import FieldInfo

__all__ = ["PREFIX", "read_environment", "unknown_variables"]

PREFIX: Final = "GM_CHAT_"
_NOT_SETTINGS: Final = frozenset({"GM_CHAT_SHARED", "GM_CHAT_REQUIRE"})
"""Read by the tests of gm-chat and of its plugins: where shared data is, and what must not be skipped."""


def read_environment() -> Source:
    """Read the process's environment as a source of settings, values still unvalidated.

    Raises :class:`ChatConfigurationError` naming the variable, never its value, if one is not the JSON it must be.
    """
    variables = frozenset(name.upper() for name in os.environ if name.upper().startswith(PREFIX))
    values = _read(variables) if variables - _NOT_SETTINGS else {}
    return Source(ENVIRONMENT, values, variables=variables)


def unknown_variables(names: Iterable[str]) -> list[tuple[str, UnknownName]]:
    """Of the names of environment variables, those that look like settings and set nothing.

    pydantic-settings passes them over in silence, so a misspelt name would go unnoticed.
    """
    ours = sorted(name for name in names if name.upper().startswith(PREFIX) and name.upper() not in _NOT_SETTINGS)
    checked = ((name, unknown_at(tuple(name[len(PREFIX) :].lower().split("__")))) for name in ours)
    return [(name, unknown) for name, unknown in checked if unknown is not None]


def _read(variables: frozenset[str]) -> dict[str, Any]:
    # Imported here: it costs 0.1 s that processes without such variables need not pay.
    from pydantic_settings import BaseSettings, EnvSettingsSource, SettingsError

    class Reader(EnvSettingsSource):
        """Accepts lists separated by commas beside JSON."""

        def decode_complex_value(self, field_name: str, field: FieldInfo | None, value: Any) -> Any:  # noqa: ARG002 the base class's
            try:
                return json.loads(value)
            except ValueError:
                if field and _is_list(field.annotation) and not value.lstrip().startswith(("[", "{")):
                    return [item.strip() for item in value.split(",") if item.strip()]
                raise

    # The same settings, in types that the reader takes apart at "__".
    shape = create_model(
        "Environment",
        __base__=ChatSettings,
        provider_config=(dict, {}),
        provider_profiles=(dict[str, ProfileSettings], {}),
        plugins=(dict, {}),
        prices=(dict[str, PriceSettings], {}),
    )
    reader = Reader(
        typing.cast("type[BaseSettings]", shape),
        case_sensitive=False,
        env_prefix=PREFIX,
        env_nested_delimiter="__",
        env_ignore_empty=True,
        env_parse_none_str="null",
    )
    try:
        return _typed(ChatSettings, reader())
    except RecursionError:
        nested = " or ".join(sorted(variables - _NOT_SETTINGS))
        raise ChatConfigurationError(f"{nested}: a value is nested too deeply.") from None
    except SettingsError as error:
        name = next((name for name in shape.model_fields if f'"{name}"' in str(error)), "")
        culprits = sorted(variable for variable in variables if variable.startswith(f"{PREFIX}{name.upper()}"))
        # The cause holds the value.
        raise ChatConfigurationError(f"{' or '.join(culprits)}: the value is not valid JSON.") from None


def _typed(section: type[Section], values: Mapping[str, Any]) -> dict[str, Any]:
    """Turn text into the number or truth value that its setting takes; text that is neither stays for validation."""
    typed: dict[str, Any] = {}
    for name, value in values.items():
        annotation = section.model_fields[name].annotation if name in section.model_fields else None
        match value:
            case str() if annotation is not None:
                typed[name] = _from_text(annotation, value)
            case dict() if isinstance(annotation, type) and issubclass(annotation, Section):
                typed[name] = _typed(annotation, value)
            case _:
                typed[name] = value
    return typed


def _from_text(annotation: Any, text: str) -> Any:
    try:
        return TypeAdapter(annotation).validate_python(text)  # without the setting's strictness and bounds
    except ValidationError:
        return text


def _is_list(annotation: Any) -> bool:
    return typing.get_origin(annotation) is tuple or any(map(_is_list, typing.get_args(annotation)))
