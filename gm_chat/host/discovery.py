"""Which plugins are installed, and which of them may be loaded. Nothing here imports a plugin."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import importlib_metadata

from gm_chat.host.problems import Failed, Origin, PluginRecord, Problem, State, attempt
from gm_chat.plugin.markers import PROJECT_NAME
from gm_chat.settings import suggestion

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

__all__ = ["Candidate", "EntryPointLike", "Selection", "candidates_of", "canonical", "choose", "installed_entry_points"]


class EntryPointLike(Protocol):
    """The part of ``importlib_metadata.EntryPoint`` that the host uses."""

    @property
    def name(self) -> str:
        """The plugin's name."""
        ...

    @property
    def dist(self) -> Any:
        """The distribution (``name``, ``version``), or ``None``."""
        ...

    def load(self) -> Any:
        """Import what the entry point names."""
        ...


@dataclass(frozen=True, slots=True)
class Candidate:
    """A plugin that could be loaded."""

    origin: Origin
    load: Callable[[], object]


@dataclass(frozen=True, slots=True)
class Selection:
    """What to load, and what is said about the rest."""

    load: tuple[Candidate, ...]
    records: tuple[PluginRecord, ...]
    problems: tuple[Problem, ...]


def installed_entry_points() -> list[EntryPointLike]:
    """The installed plugins' entry points."""
    return list(importlib_metadata.entry_points(group=PROJECT_NAME))


def candidates_of(entry_points: Iterable[EntryPointLike]) -> list[Candidate]:
    """The candidates, sorted by name, then by distribution, so that every process sees one order."""
    found = [Candidate(_origin(entry_point), entry_point.load) for entry_point in entry_points]
    return sorted(found, key=lambda candidate: (candidate.origin.plugin, candidate.origin.distribution))


def choose(
    candidates: Sequence[Candidate],
    *,
    disabled: Collection[str],
    enabled: Collection[str] | None,
    reserved: Collection[str],
) -> Selection:
    """Apply the block list, the allow list and the rule for equal names, in this order.

    Both lists take a plugin's name or its distribution's; blocked wins over allowed. Of two plugins with one name
    neither is loaded, since either choice would be a silent one: block one of them by its distribution's name.
    A name in ``reserved`` belongs to the core, which keeps it.
    """
    blocked = {canonical(name) for name in disabled}
    allowed = None if enabled is None else {canonical(name) for name in enabled}
    open_ones: list[Candidate] = []
    records: list[PluginRecord] = []
    for candidate in candidates:
        names = _names(candidate)
        if names & blocked or (allowed is not None and not names & allowed):
            records.append(_record(candidate, "disabled"))
        else:
            open_ones.append(candidate)
    problems = _unknown_names(candidates, "disabled", disabled) + _unknown_names(candidates, "enabled", enabled or ())
    uses = Counter(candidate.origin.plugin for candidate in open_ones)
    chosen = []
    for candidate in open_ones:
        name = candidate.origin.plugin
        if uses[name] == 1 and name not in reserved:
            chosen.append(candidate)
            continue
        records.append(_record(candidate, "refused"))
        problems.append(_taken(candidate, open_ones, reserved))
    return Selection(tuple(chosen), tuple(records), tuple(problems))


def _taken(candidate: Candidate, others: Sequence[Candidate], reserved: Collection[str]) -> Problem:
    name = candidate.origin.plugin
    if name in reserved:
        return candidate.origin.problem("error", "the name belongs to gm-chat itself; this plugin is not loaded.")
    users = " and ".join(
        f"{other.origin.distribution} {other.origin.version}" for other in others if other.origin.plugin == name
    )
    return candidate.origin.problem(
        "error",
        f"the name is used by {users}; none of them is loaded.",
        hint="Uninstall one, or disable it by its distribution's name, e.g. "
        f"GM_CHAT_DISABLED_PLUGINS={candidate.origin.distribution}.",
    )


def _unknown_names(candidates: Sequence[Candidate], setting: str, names: Collection[str]) -> list[Problem]:
    known = {name for candidate in candidates for name in _names(candidate)}
    return [
        Origin(name, "not installed", "").problem(
            "warning",
            f"the list of {setting} plugins names it, but no installed plugin or distribution has that name.",
            hint=suggestion(canonical(name), known),
        )
        for name in sorted(names)
        if canonical(name) not in known
    ]


def canonical(name: str) -> str:
    """The one spelling of a plugin's or distribution's name: ``Gm_Chat.X`` and ``gm-chat-x`` are the same."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _names(candidate: Candidate) -> set[str]:
    return {canonical(candidate.origin.plugin), canonical(candidate.origin.distribution)}


def _record(candidate: Candidate, state: State) -> PluginRecord:
    origin = candidate.origin
    return PluginRecord(name=origin.plugin, distribution=origin.distribution, version=origin.version, state=state)


def _origin(entry_point: EntryPointLike) -> Origin:
    # Broken metadata of one distribution must not hide the others: name and version are read one by one.
    return Origin(
        entry_point.name,
        _text(lambda: entry_point.dist.name, "unknown distribution"),
        _text(lambda: entry_point.dist.version, "unknown version"),
    )


def _text(read: Callable[[], object], default: str) -> str:
    value = attempt(read)
    return default if value is None or isinstance(value, Failed) else str(value)
