"""The chat's settings: read once, validated, immutable.

Sources, weakest first: the defaults, ``GENERAL_MANAGER["CHAT"]``, ``GM_CHAT``, environment variables ``GM_CHAT_*``.
:mod:`gm_chat.settings.model` lists every key, :mod:`gm_chat.settings.sources` merges. Importing this package needs
no configured Django. (Specification: "Settings".)
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, Final

from django.core.signals import setting_changed
from django.utils.module_loading import import_string

from gm_chat.settings.environment import read_environment
from gm_chat.settings.error import ChatConfigurationError, suggestion
from gm_chat.settings.model import (
    REQUIRED_ROLES,
    AuditSettings,
    ChatSettings,
    PlannedSettings,
    PriceSettings,
    ProfileSettings,
    RateLimitSettings,
    canonical_path,
    plain,
)
from gm_chat.settings.sources import Source, UnknownName, build_settings, merge

__all__ = [
    "REQUIRED_ROLES",
    "SETTING_NAMES",
    "AuditSettings",
    "ChatConfigurationError",
    "ChatSettings",
    "PlannedSettings",
    "PriceSettings",
    "ProfileSettings",
    "RateLimitSettings",
    "build_settings",
    "canonical_path",
    "configured_values",
    "get_chat_settings",
    "import_callable",
    "plain",
    "suggestion",
    "tolerated_names",
    "validate_chat_settings",
]

SETTING_NAMES: Final = frozenset({"GM_CHAT", "GENERAL_MANAGER", "INSTALLED_APPS"})
"""The Django settings that the chat's settings depend on; a change of one of them builds everything anew."""


@functools.cache
def get_chat_settings() -> ChatSettings:
    """Return the chat's settings, merged with the defaults.

    Cached until one of :data:`SETTING_NAMES` changes (``override_settings``); after a change of the environment call
    ``get_chat_settings.cache_clear()``. Raises :class:`ChatConfigurationError`.
    """
    return build_settings(_sources())


def configured_values() -> dict[str, Any]:
    """What is configured, merged as :func:`get_chat_settings` does it, but neither validated nor with the defaults.

    Evaluations lay the settings that they compare over it.
    """
    return merge(_sources())


def validate_chat_settings() -> ChatSettings:
    """Return the chat's settings, after importing the ``permission`` that they name.

    Raises :class:`ChatConfigurationError`. That the mutations in the allow-list exist is checked against the schema,
    by ``manage.py check``.
    """
    settings = get_chat_settings()
    if settings.permission is not None:
        import_callable(settings.permission, setting="permission")
    return settings


def import_callable(value: Callable[..., Any] | str, *, setting: str) -> Callable[..., Any]:
    """Return the callable that a setting holds or names by its dotted path; ``setting`` is for the error."""
    if callable(value):
        return value
    try:
        found = import_string(value)
    except (Exception, SystemExit) as error:  # a project's module may raise anything while it is imported
        raise ChatConfigurationError(
            f"The chat setting {setting!r} names {value!r}, which cannot be imported. {type(error).__name__}: {error}"
        ) from error
    if not callable(found):
        raise ChatConfigurationError(
            f"The chat setting {setting!r} names {value!r}, which is no callable but a {type(found).__name__}."
        )
    return found  # type: ignore[no-any-return]  # whatever import_string finds


def tolerated_names() -> list[UnknownName]:
    """Names in ``GENERAL_MANAGER["CHAT"]`` that are not ours and left to the real GeneralManager beside us."""
    source = _general_manager_source()
    return source.unknown() if source.tolerant else []


def _sources() -> list[Source]:
    return [_general_manager_source(), _gm_chat_source(), read_environment()]


def _general_manager_source() -> Source:
    # Imported here, so that the package can be imported before Django's settings are configured.
    from django.conf import settings

    general = getattr(settings, "GENERAL_MANAGER", None) or {}
    if not isinstance(general, Mapping):
        raise ChatConfigurationError(f"GENERAL_MANAGER must be a mapping, not a {type(general).__name__}.")
    installed = any(app.partition(".")[0] == "general_manager" for app in settings.INSTALLED_APPS)
    return Source('GENERAL_MANAGER["CHAT"]', _mapping(general.get("CHAT")), tolerant=installed)


def _gm_chat_source() -> Source:
    from django.conf import settings

    return Source("GM_CHAT", _mapping(getattr(settings, "GM_CHAT", None)))


def _mapping(value: object) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise ChatConfigurationError.invalid_settings_mapping()
    return value


def _forget(*, setting: str, **_: Any) -> None:
    if setting in SETTING_NAMES:
        get_chat_settings.cache_clear()


setting_changed.connect(_forget, dispatch_uid="gm_chat.settings")
