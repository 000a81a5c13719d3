"""Every chat setting with its default and what it accepts. ``docs/settings.md`` explains them to users.

The result of validation is immutable deep down and can be read both ways: ``settings.rate_limit.requests`` and
``settings["rate_limit"]["requests"]``. Configurations that may hold secrets are :class:`SecretMapping`, whose
``repr`` masks them. (Specification: "Settings".)
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator, Mapping, Set
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any, Final, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    field_validator,
    model_validator,
)

from gm_chat.providers.base import SecretMapping
from gm_chat.settings.error import ChatConfigurationError, suggestion

__all__ = [
    "REQUIRED_ROLES",
    "UNIX_SOCKET",
    "AuditSettings",
    "ChatSettings",
    "PlannedSettings",
    "PriceSettings",
    "ProfileSettings",
    "RateLimitSettings",
    "Section",
    "canonical_path",
    "plain",
]

REQUIRED_ROLES: Final = ("planner", "simple_executor", "complex_executor", "synthesizer", "fallback_executor")
"""The roles of planned turns; with explicit profiles, each needs one."""

UNIX_SOCKET: Final = "unix"
"""Stands in ``rate_limit["trusted_proxies"]`` for a proxy that connects through a socket in the file system."""

IMPLICIT_PROFILE: Final = "default"
"""The profile that planned turns use when ``provider_profiles`` is left out: the chat's own provider."""

_URL_PATH: Final = re.compile(r"[^\s<>?#:\\]*")
_REFERENCE_PACKAGE: Final = "general_manager.chat."


def canonical_path(path: str) -> str:
    """Read a dotted path of the system that gm-chat re-creates, ``general_manager.chat.X``, as ``gm_chat.X``."""
    return "gm_chat." + path.removeprefix(_REFERENCE_PACKAGE) if path.startswith(_REFERENCE_PACKAGE) else path


def plain(value: Any) -> Any:
    """Copy a setting into plain, mutable dicts and lists, all the way down: what an SDK or ``json`` wants."""
    match value:
        case Mapping():
            return {key: plain(item) for key, item in value.items()}
        case list() | tuple():
            return [plain(item) for item in value]
        case _:
            return value


def _frozen(value: Any) -> Any:
    match value:
        case Mapping():
            return SecretMapping({key: _frozen(item) for key, item in value.items()})
        case list() | tuple():
            return tuple(_frozen(item) for item in value)
        case Set():
            return frozenset(value)
        case _:
            return value


def _config(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError(f"must be a mapping, not {_kind(value)}")
    _refuse_odd_keys(value)
    frozen: SecretMapping = _frozen(value)
    return frozen


def _configs(value: Any) -> Mapping[str, Mapping[str, Any]]:
    return SecretMapping({name: _config(item) for name, item in _config(value).items()})


def _names(value: Any) -> Any:
    match value:
        case str():
            raise ValueError("must be a list of names, not one string")
        case list() | tuple():
            return tuple(value)
        case Set():
            return tuple(sorted(value, key=str))
        case _:
            return value


def _hook(value: Any) -> Any:
    if value is None or callable(value):
        return value
    if isinstance(value, str) and "." in value:
        return canonical_path(value)
    raise ValueError(f"must be None, a callable or the dotted path of one, not {_kind(value)}")


def _permission(value: Any) -> Any:
    try:
        return _hook(value)
    except ValueError:
        raise ChatConfigurationError.invalid_permission() from None


def _catalog(value: Any) -> Any:
    return _config(value) if isinstance(value, Mapping) else _hook(value)


def _url(value: str) -> str:
    if not _URL_PATH.fullmatch(value):
        raise ValueError('must be a plain path such as "/chat/", without host, query or converters')
    path = "/".join(part for part in value.split("/") if part)
    return f"/{path}/" if path else "/"


def _network(value: str) -> str:
    if value == UNIX_SOCKET:
        return value
    try:
        return str(ipaddress.ip_network(value, strict=False))
    except ValueError:
        raise ValueError('must be an address, a network such as "10.0.0.0/8", or "unix"') from None


def _price(value: Any) -> Any:
    """Take a number as it is written: a float's shortest form, and no other."""
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        raise ValueError("must be a number, as text where it has decimals")
    try:
        return Decimal(str(value))
    except InvalidOperation:
        raise ValueError("must be a number") from None


def _kind(value: object) -> str:
    return "None" if value is None else f"a value of type {type(value).__name__}"


def _as_dict(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    _refuse_odd_keys(value)
    return dict(value)


def _refuse_odd_keys(value: Mapping[Any, Any]) -> None:
    if odd := [key for key in value if not isinstance(key, str)]:
        raise ValueError(f"must have text as keys, not {_kind(odd[0])}")


Name = Annotated[str, Field(min_length=1)]
Names = Annotated[tuple[Name, ...], BeforeValidator(_names)]
DottedPath = Annotated[Name, AfterValidator(canonical_path)]
Price = Annotated[Decimal, BeforeValidator(_price), Field(ge=0, allow_inf_nan=False)]
Networks = Annotated[tuple[Annotated[str, AfterValidator(_network)], ...], BeforeValidator(_names)]
Config = Annotated[Mapping[str, Any], PlainValidator(_config)]
Configs = Annotated[Mapping[str, Mapping[str, Any]], PlainValidator(_configs)]
Permission = Annotated[Callable[..., Any] | str | None, PlainValidator(_permission)]
Hook = Annotated[Callable[..., Any] | str | None, PlainValidator(_hook)]
Catalog = Annotated[Mapping[str, Any] | Callable[..., Any] | str | None, PlainValidator(_catalog)]
Url = Annotated[str, AfterValidator(_url)]
PositiveInt = Annotated[int, Field(gt=0)]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Grace = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Section(BaseModel, Mapping[str, Any]):
    """A group of settings: immutable, read by attribute or as a mapping, equal to a plain mapping of its values."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", hide_input_in_errors=True)

    def __getitem__(self, key: str) -> Any:
        """Return the setting of that name."""
        if key not in type(self).model_fields:
            raise KeyError(key)
        return getattr(self, key)

    def __iter__(self) -> Iterator[str]:  # type: ignore[override]  # a mapping iterates over its keys
        """Iterate over the names of all settings, those with their default value included."""
        return iter(type(self).model_fields)

    def __len__(self) -> int:
        """Count the settings."""
        return len(type(self).model_fields)

    def __eq__(self, other: object) -> bool:
        """Compare by value with any mapping; a list equals a tuple of the same items."""
        return bool(plain(self) == plain(other)) if isinstance(other, Mapping) else NotImplemented

    def __hash__(self) -> int:
        """Hash by value; a section that holds a mapping has no hash, as any mapping."""
        return hash(tuple(self.values()))


class RateLimitSettings(Section):
    """Budgets per actor and window. ``None``, zero and negative values mean "no budget".

    ``address_requests`` is what all anonymous visitors of an address share: ``None`` is as much as one may use.
    """

    requests: int | None = 60
    window_seconds: PositiveInt = 3600
    tokens: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    address_requests: int | None = None
    output_reservation: PositiveInt = 1024
    trusted_proxies: Networks = ()
    store: Name = "cache"
    cache: Name = "default"
    on_failure: Literal["deny", "allow"] = "deny"


class PriceSettings(Section):
    """What a million tokens of a model cost, in whatever currency. Without ``cached``, cached input costs as any."""

    input: Price
    output: Price
    cached: Price | None = None


class AuditSettings(Section):
    """What is written to the audit log. ``max_result_size`` counts characters of a serialized tool result.

    ``required`` names the sinks without which no turn may go on.
    """

    enabled: bool = False
    level: Literal["off", "messages", "all"] = "off"
    logger: Hook = None
    required: Names = ()
    max_result_size: PositiveInt = 4096
    redact_fields: Names = ("password", "secret", "token", "key", "credential")


class ProfileSettings(Section):
    """A named provider: a fallback, or for roles of planned turns. It inherits nothing from the chat's own provider."""

    provider: DottedPath
    provider_config: Config = Field(default_factory=lambda: SecretMapping({}))
    trust_group: Name


Prices = Annotated[Mapping[str, PriceSettings], BeforeValidator(_as_dict), AfterValidator(SecretMapping)]
Profiles = Annotated[Mapping[str, ProfileSettings], BeforeValidator(_as_dict), AfterValidator(SecretMapping)]
Roles = Annotated[Mapping[str, str], BeforeValidator(_as_dict), AfterValidator(SecretMapping)]


class PlannedSettings(Section):
    """Planned read orchestration; off unless ``enabled``."""

    enabled: bool = False
    mode: Literal["always", "auto"] = "always"
    catalog: Catalog = None
    roles: Roles = Field(default_factory=lambda: SecretMapping({}))
    max_concurrent_tasks: PositiveInt = 3
    evidence_timeout_seconds: Seconds = 90
    synthesis_timeout_seconds: Seconds = 30

    @field_validator("roles")
    @classmethod
    def _only_known_roles(cls, roles: Mapping[str, str]) -> Mapping[str, str]:
        for role in roles:
            if role not in REQUIRED_ROLES:
                raise ChatConfigurationError.invalid_planned_settings(
                    f"there is no role {role!r}. {suggestion(role, REQUIRED_ROLES)}"
                )
        return roles


class ChatSettings(Section):
    """All chat settings, merged and validated."""

    enabled: bool = False
    url: Url = "/chat/"
    provider: DottedPath = "gm_chat.providers.OllamaProvider"
    provider_config: Config = Field(default_factory=lambda: SecretMapping({}))
    provider_profiles: Profiles = Field(default_factory=lambda: SecretMapping({}))
    fallback_profile: Name | None = None
    planned: PlannedSettings = Field(default_factory=PlannedSettings)
    permission: Permission = None
    allowed_origins: Names | None = None
    allowed_mutations: Names = ()
    confirm_mutations: Names = ()
    taint_mutations: bool = False
    confirm_timeout_seconds: Seconds = 30
    claim_lease_seconds: Seconds = 60
    max_results: PositiveInt = 200
    query_timeout_seconds: Seconds | None = None
    turn_timeout_seconds: Seconds | None = None
    resume_grace_seconds: Grace = 10
    max_message_characters: PositiveInt = 32_000
    max_retries_per_message: int = 3
    max_mutations_per_message: int = 8
    max_total_rounds_per_message: int | None = None
    tool_strategy: Literal["discovery", "direct"] = "discovery"
    disabled_tools: Names = ()
    recover_missing_tool_calls: bool = False
    system_prompt: str = ""
    max_recent_messages: PositiveInt = 20
    summarize_after: PositiveInt = 10
    ttl_hours: Seconds = 24
    rate_limit: RateLimitSettings = Field(default_factory=RateLimitSettings)
    prices: Prices = Field(default_factory=lambda: SecretMapping({}))
    audit: AuditSettings = Field(default_factory=AuditSettings)
    plugins: Configs = Field(default_factory=lambda: SecretMapping({}))
    disabled_plugins: Names = ()
    enabled_plugins: Names | None = None

    @field_validator("max_retries_per_message", "max_mutations_per_message", mode="before")
    @classmethod
    def _non_negative(cls, value: Any, info: Any) -> int:
        if type(value) is not int or value < 0:
            raise ChatConfigurationError.invalid_turn_limit(info.field_name, "an integer, 0 or more")
        return value

    @field_validator("max_total_rounds_per_message", mode="before")
    @classmethod
    def _positive_or_none(cls, value: Any, info: Any) -> int | None:
        if value is None or (type(value) is int and value > 0):
            return value
        raise ChatConfigurationError.invalid_turn_limit(info.field_name, "a positive integer or None")

    @model_validator(mode="after")
    def _confirmed_mutations_are_allowed(self) -> Self:
        if surplus := sorted(set(self.confirm_mutations) - set(self.allowed_mutations)):
            raise ChatConfigurationError.invalid_confirm_mutations(", ".join(surplus))
        return self

    @model_validator(mode="after")
    def _fallback_is_a_profile(self) -> Self:
        if self.fallback_profile is not None and self.fallback_profile not in self.provider_profiles:
            raise ChatConfigurationError.unknown_fallback_profile(
                suggestion(self.fallback_profile, self.provider_profiles)
            )
        return self

    @model_validator(mode="after")
    def _roles_have_profiles(self) -> Self:
        if not self.planned.enabled:
            return self
        profiles: set[str] = set(self.provider_profiles) or {IMPLICIT_PROFILE}
        for role in REQUIRED_ROLES if self.provider_profiles else self.planned.roles:
            if role not in self.planned.roles:
                raise ChatConfigurationError.invalid_planned_settings(f"planned['roles'] gives no profile to {role!r}.")
            if (name := self.planned.roles[role]) not in profiles:
                raise ChatConfigurationError.invalid_planned_settings(
                    f"the role {role!r} uses the profile {name!r}, which provider_profiles does not define. "
                    f"{suggestion(name, profiles)}"
                )
        groups = {
            self.provider_profiles[name].trust_group
            for name in self.planned.roles.values()
            if name in self.provider_profiles
        }
        if len(groups) > 1:
            raise ChatConfigurationError.invalid_planned_settings(
                f"all profiles in use must share one trust_group, not {', '.join(sorted(map(repr, groups)))}."
            )
        return self
