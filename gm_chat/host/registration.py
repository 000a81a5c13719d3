"""What the registration hooks hand out: collected, type-checked, and unique where names choose."""

from __future__ import annotations

import dataclasses
import functools
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from gm_chat.host.guards import AttributedSource, attributed
from gm_chat.host.problems import Failed, Origin, Problem, Severity, attempt
from gm_chat.host.stores import GuardedStore
from gm_chat.plugin.protocols import AuditSink, ManagerSource, PermissionCheck
from gm_chat.plugin.specs import CatalogSpec, ProviderSpec, RateLimitStoreSpec, StreamProtocolSpec, ToolSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from gm_chat.host.calls import HookCall

__all__ = [
    "AUDIT_SINKS",
    "CATALOGS",
    "EVAL_DATASETS",
    "MANAGER_SOURCES",
    "PERMISSION_CHECKS",
    "PROVIDERS",
    "RATE_LIMIT_STORES",
    "REGISTRATIONS",
    "STREAM_PROTOCOLS",
    "TOOLS",
    "URLS",
    "Collected",
    "Registration",
    "collect",
    "typed_items",
]

T = TypeVar("T")


def _name_of(item: Any) -> str:
    return item.name  # type: ignore[no-any-return]  # collect() has seen that it is text


def _tool_name(item: ToolSpec) -> str:
    return item.definition.name


@dataclass(frozen=True, slots=True)
class Registration(Generic[T]):
    """One registration hook: what it hands out, how bad a failure is, and by what name things are chosen, if any.

    A class for ``kind`` is checked with ``isinstance``; ``wrap`` puts the guards on.
    """

    hook: str
    kind: type[T]
    severity: Severity
    name_of: Callable[[T], str] | None = None
    wrap: Callable[[Origin, T], T] | None = None


@dataclass(frozen=True, slots=True)
class Collected(Generic[T]):
    """What the plugins handed out, in call order, each with where it comes from; and what went wrong."""

    items: tuple[tuple[Origin, T], ...]
    problems: tuple[Problem, ...]

    @property
    def values(self) -> tuple[T, ...]:
        """The items alone."""
        return tuple(item for _, item in self.items)

    def by_name(self, name_of: Callable[[T], str] = _name_of) -> dict[str, T]:
        """The items by the name that chooses them."""
        return {name_of(item): item for _, item in self.items}


def _guard_tool(origin: Origin, spec: ToolSpec) -> ToolSpec:
    return dataclasses.replace(spec, run=attributed(origin, f"tool {spec.definition.name!r}", spec.run))


def _guard_store(origin: Origin, spec: RateLimitStoreSpec) -> RateLimitStoreSpec:
    return dataclasses.replace(spec, build=lambda: GuardedStore(origin, spec.name, spec.build()))


PROVIDERS: Final = Registration("gm_chat_providers", ProviderSpec, "warning", _name_of)
TOOLS: Final = Registration("gm_chat_tools", ToolSpec, "warning", _tool_name, _guard_tool)
MANAGER_SOURCES: Final[Registration[ManagerSource]] = Registration(
    "gm_chat_manager_sources",
    ManagerSource,  # type: ignore[type-abstract]  # a runtime-checkable protocol serves isinstance as a class does
    "error",
    _name_of,
    AttributedSource,
)
CATALOGS: Final = Registration("gm_chat_catalogs", CatalogSpec, "warning", _name_of)
PERMISSION_CHECKS: Final[Registration[PermissionCheck]] = Registration(
    "gm_chat_permission_checks",
    PermissionCheck,  # type: ignore[type-abstract]  # as above
    "error",
)
AUDIT_SINKS: Final[Registration[AuditSink]] = Registration(
    "gm_chat_audit_sinks",
    AuditSink,  # type: ignore[type-abstract]  # as above
    "error",
    _name_of,
)
RATE_LIMIT_STORES: Final = Registration(
    "gm_chat_rate_limit_stores", RateLimitStoreSpec, "warning", _name_of, _guard_store
)
STREAM_PROTOCOLS: Final = Registration("gm_chat_stream_protocols", StreamProtocolSpec, "warning", _name_of)
EVAL_DATASETS: Final = Registration("gm_chat_eval_datasets", str, "warning")
URLS: Final = Registration("gm_chat_urls", object, "warning")

REGISTRATIONS: Final[tuple[Registration[Any], ...]] = (
    PROVIDERS,
    TOOLS,
    MANAGER_SOURCES,
    CATALOGS,
    PERMISSION_CHECKS,
    AUDIT_SINKS,
    RATE_LIMIT_STORES,
    STREAM_PROTOCOLS,
    EVAL_DATASETS,
    URLS,
)


def collect(registration: Registration[T], calls: Sequence[HookCall], reserved: Collection[str]) -> Collected[T]:
    """Call the hook of each plugin and keep what is right.

    A plugin whose hook fails, or hands out one wrong thing, contributes nothing to that hook: half of what it meant
    might be worse than none. ``reserved`` are the core's plugins.
    """
    items: list[tuple[Origin, T]] = []
    problems: list[Problem] = []
    for call in calls:
        result = typed_items(call, registration.kind, registration.name_of)
        if isinstance(result, str):
            problems.append(call.origin.problem(registration.severity, result, hook=call.hook))
            continue
        items.extend((call.origin, item) for item in result)
    if registration.name_of is not None:
        items, clashes = _unique(registration, registration.name_of, items, reserved)
        problems.extend(clashes)
    if registration.wrap is not None:
        items = [(origin, registration.wrap(origin, item)) for origin, item in items]
    return Collected(tuple(items), tuple(problems))


def typed_items(call: HookCall, kind: type[T], name_of: Callable[[T], str] | None = None) -> list[T] | str:
    """What the plugin hands out, or in words why that is unusable."""
    result = call.items()
    if isinstance(result, Failed):
        return f"it failed: {result}."
    for item in result:
        # Looking at it runs foreign code too: properties, and whatever stands in for them.
        fault = attempt(functools.partial(_fault_of, item, kind, name_of))
        if isinstance(fault, Failed):
            return f"it handed out a {type(item).__name__} that cannot be examined: {fault}."
        if fault is not None:
            return fault
    return result


def _fault_of(item: Any, kind: type[T], name_of: Callable[[T], Any] | None) -> str | None:
    if isinstance(item, type):  # a class has its instances' methods and would pass as one
        return f"it handed out the class {item.__name__}, not an instance."
    if not isinstance(item, kind):
        return f"it handed out a {type(item).__name__}, which is no {kind.__name__}."
    if name_of is not None and not (isinstance(name := name_of(item), str) and name):
        return f"it handed out a {type(item).__name__} whose name is {name!r}, not text."
    return None


def _unique(
    registration: Registration[T],
    name_of: Callable[[T], str],
    items: Sequence[tuple[Origin, T]],
    reserved: Collection[str],
) -> tuple[list[tuple[Origin, T]], list[Problem]]:
    """Of things with one name the core's stays; between others none does, as either choice would be a silent one."""
    owners: Mapping[str, list[Origin]] = defaultdict(list)
    for origin, item in items:
        owners[name_of(item)].append(origin)
    kept: list[tuple[Origin, T]] = []
    problems: list[Problem] = []
    for origin, item in items:
        name = name_of(item)
        rivals = owners[name]
        core = [rival for rival in rivals if rival.plugin in reserved]
        if len(rivals) == 1 or (origin.plugin in reserved and len(core) == 1):
            kept.append((origin, item))
        else:
            who = " and ".join(f"{rival.plugin!r}" for rival in rivals)
            left = "gm-chat's own is used" if len(core) == 1 else "none of them is used"
            message = f"the name {name!r} is offered by {who}; {left}."
            problems.append(origin.problem("error", message, hook=registration.hook))
    return kept, problems
