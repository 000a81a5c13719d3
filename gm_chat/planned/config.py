"""Which provider plays which role of a planned turn, and how long the turn may take.

:mod:`gm_chat.settings` validates the chat's settings; this only gives them the form that the planned modules use.
Without ``provider_profiles`` the chat's own provider plays every role, as the profile ``default``. A named profile is
built from its own ``provider_config`` alone, ``{}`` included. (Specification: "Planned settings and catalog".)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gm_chat.doors import current_runtime
from gm_chat.providers.base import SecretMapping
from gm_chat.settings import REQUIRED_ROLES, ChatConfigurationError, plain, suggestion
from gm_chat.settings.model import IMPLICIT_PROFILE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gm_chat.plugin.specs import ProviderSpec
    from gm_chat.providers.base import Provider
    from gm_chat.settings import ChatSettings

__all__ = [
    "REQUIRED_ROLES",
    "PlannedChatSettings",
    "ProviderProfile",
    "build_profile_provider",
    "get_planned_chat_settings",
    "planned_chat_settings",
    "profile_for_role",
    "validate_profile_provider",
]


@dataclass(frozen=True, slots=True)
class ProviderProfile:
    """A provider for roles of planned turns. ``configured`` says that it has a configuration of its own.

    ``provider_path`` is a class's dotted path or a plugin's name.
    """

    name: str
    provider_path: str
    provider_config: Mapping[str, Any]
    trust_group: str
    configured: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "provider_config", SecretMapping(self.provider_config))


@dataclass(frozen=True, slots=True)
class PlannedChatSettings:
    """The settings of planned turns. Times are in seconds: until all evidence is there, then until the answer is."""

    enabled: bool
    profiles: Mapping[str, ProviderProfile]
    roles: Mapping[str, str]
    catalog_source: object
    max_concurrent_tasks: int = 3
    evidence_timeout_seconds: float = 90.0
    synthesis_timeout_seconds: float = 30.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "profiles", SecretMapping(self.profiles))
        object.__setattr__(self, "roles", SecretMapping(self.roles))


def get_planned_chat_settings() -> PlannedChatSettings:
    """Return the settings of planned turns in this process. Raises :class:`ChatConfigurationError`."""
    return planned_chat_settings(current_runtime().settings)


def planned_chat_settings(settings: ChatSettings) -> PlannedChatSettings:
    """Return what ``settings`` say about planned turns; where those are off, with the chat's own provider alone."""
    planned = settings.planned
    named = settings.provider_profiles if planned.enabled else {}
    profiles = {
        name: ProviderProfile(name, item.provider, item.provider_config, item.trust_group, configured=True)
        for name, item in named.items()
    } or {
        IMPLICIT_PROFILE: ProviderProfile(
            IMPLICIT_PROFILE, settings.provider, settings.provider_config, trust_group=IMPLICIT_PROFILE
        )
    }
    return PlannedChatSettings(
        enabled=planned.enabled,
        profiles=profiles,
        roles=planned.roles if named else dict.fromkeys(REQUIRED_ROLES, IMPLICIT_PROFILE),
        catalog_source=planned.catalog,
        max_concurrent_tasks=planned.max_concurrent_tasks,
        evidence_timeout_seconds=float(planned.evidence_timeout_seconds),
        synthesis_timeout_seconds=float(planned.synthesis_timeout_seconds),
    )


def profile_for_role(settings: PlannedChatSettings, role: str) -> ProviderProfile:
    """Return the profile that plays a role. Raises :class:`ChatConfigurationError` for a role without one."""
    if role not in settings.roles:
        raise ChatConfigurationError.invalid_planned_settings(
            f"there is no role {role!r}. {suggestion(str(role), REQUIRED_ROLES)}"
        )
    name = settings.roles[role]
    if name not in settings.profiles:
        raise ChatConfigurationError.invalid_planned_settings(
            f"the role {role!r} uses the profile {name!r}. {suggestion(name, settings.profiles)}"
        )
    return settings.profiles[name]


def build_profile_provider(profile: ProviderProfile) -> Provider:
    """Build a profile's provider: from its own configuration, or as the chat itself builds its provider.

    Raises ``ImportError`` where something is not installed, and what the provider raises.
    """
    return _build(current_runtime().provider_spec(profile.provider_path), profile)


def validate_profile_provider(profile: ProviderProfile) -> Provider:
    """Build a profile's provider, after its own check of the configuration.

    Raises :class:`ChatConfigurationError` that names the profile; ``ImportError`` where something is not installed.
    """
    try:
        spec = current_runtime().provider_spec(profile.provider_path)
        if spec.check is not None:
            spec.check(plain(profile.provider_config))
        return _build(spec, profile)
    except ImportError:
        raise
    except Exception as error:
        raise ChatConfigurationError.invalid_planned_settings(
            f"provider_profiles[{profile.name!r}] cannot be used: {error}"
        ) from error


def _build(spec: ProviderSpec, profile: ProviderProfile) -> Provider:
    return spec.build(plain(profile.provider_config) if profile.configured else None)
