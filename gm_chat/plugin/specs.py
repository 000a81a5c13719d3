"""The small typed objects that registration hooks return."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

if TYPE_CHECKING:
    from gm_chat.plugin.context import ToolContext
    from gm_chat.plugin.protocols import RateLimitStore
    from gm_chat.providers.base import Capability, CheckWarning, Provider, ToolDefinition

TOOL_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
"""What the strictest provider accepts as a tool's name."""

Level = Literal["debug", "info", "warning", "error", "critical"]

ToolRun = Callable[[Mapping[str, Any], "ToolContext"], Awaitable[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderSpec:
    """A provider under a short name, as in ``"provider": "ollama"``.

    ``build(config)`` makes an instance; ``None`` means "read the chat's provider_config". It is the first moment at
    which the vendor's SDK may be imported. Each turn builds its own, in a thread as long as that takes time.
    ``check(config)`` raises ``ImportError`` when the SDK is missing (check E003, with ``required_extra`` in the hint),
    ``ValueError`` when it cannot work as it is configured (E002), and anything else when it is unusable otherwise
    (E004). It returns warnings of what may not work.
    """

    name: str
    build: Callable[[Mapping[str, Any] | None], Provider]
    capabilities: frozenset[Capability] = frozenset()
    required_extra: str | None = None
    check: Callable[[Mapping[str, Any] | None], Sequence[CheckWarning] | None] | None = None

    def __post_init__(self) -> None:
        _check(self, "name", "text", holds=isinstance(self.name, str))
        _check(self, "build", "a function of (config)", holds=callable(self.build))
        _check(self, "check", "a function of (config), or None", holds=self.check is None or callable(self.check))


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """A tool: what the model sees, and what runs.

    ``run(args, context)`` gets arguments that satisfy the definition's ``input_schema`` as far as types go, and
    returns a JSON value. It raises :class:`~gm_chat.plugin.ToolError` for what the model can mend. ``kind="write"``
    makes the host ask the permission checks, count the call as a mutation and keep it out of planned executors; it
    also marks the definition as one that ``writes``. ``reads_records=False`` says that no result holds text of
    records, errors included: such a call leaves ``taint_mutations`` as it was.
    """

    definition: ToolDefinition
    run: ToolRun
    kind: Literal["read", "write"] = "read"
    reads_records: bool = True

    def __post_init__(self) -> None:
        if not TOOL_NAME.fullmatch(self.definition.name):
            raise ValueError(
                f"tool name {self.definition.name!r} is not usable: at most 64 letters, digits, '_' or '-', "
                "starting with a letter or '_'"
            )
        _check(self, "run", "an async function of (args, context)", holds=callable(self.run))
        _check(self, "kind", "'read' or 'write'", holds=self.kind in ("read", "write"))
        _check(self, "reads_records", "true or false", holds=isinstance(self.reads_records, bool))
        if self.kind == "write" and not self.definition.writes:
            object.__setattr__(self, "definition", replace(self.definition, writes=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogSpec:
    """People's words for managers: ``load()`` returns ``{manager name: entry}``.

    An entry is a mapping of ``domain``, ``aliases``, ``use_when`` and ``distinguish_from``. ``load()`` runs once, when
    the managers are first needed, and may use the ORM. Entries of managers that are not exposed have no effect.
    """

    name: str
    load: Callable[[], Mapping[str, object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimitStoreSpec:
    """A store that the setting ``rate_limit["store"]`` can name; ``build()`` runs only if it is chosen."""

    name: str
    build: Callable[[], RateLimitStore]


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamProtocolSpec:
    """Another vocabulary for the event stream, picked by ``Accept`` or by ``?protocol=<name>``.

    ``encode(event)`` maps one public event (a JSON object) to the objects to send in its place, possibly none.
    """

    name: str
    media_type: str
    encode: Callable[[Mapping[str, Any]], list[Mapping[str, Any]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptSection:
    """Text for the system prompt. Sections are joined by ``order``, then by plugin name."""

    text: str
    order: int = 100

    def __post_init__(self) -> None:
        _check(self, "text", "text", holds=isinstance(self.text, str))
        _check(self, "order", "an integer", holds=isinstance(self.order, int))


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """One finding for ``manage.py check``: ``hint`` holds the exact line to type."""

    id: str
    level: Level
    message: str
    hint: str | None = None

    def __post_init__(self) -> None:
        _check(self, "id", "text", holds=isinstance(self.id, str))
        _check(self, "level", f"one of {', '.join(get_args(Level))}", holds=self.level in get_args(Level))
        _check(self, "message", "text", holds=isinstance(self.message, str))
        _check(self, "hint", "text or None", holds=self.hint is None or isinstance(self.hint, str))


def _check(spec: object, name: str, expected: str, *, holds: bool) -> None:
    """Refuse a wrong value where it is written, instead of failing where it is read."""
    if not holds:
        raise ValueError(f"{type(spec).__name__}.{name} is {getattr(spec, name)!r:.80}: expected {expected}")
