"""All catalogs as one: the setting's and the plugins', each manager's words from one of them.

The first that speaks of a manager is heard: the setting's comes first, then the plugins' by name. What is wrong with
the setting's catalog is the project's mistake and raised; what is wrong with a plugin's costs the words that it is
wrong about, and is named.
"""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from django.db import connections

from gm_chat.defaults import CORE_PLUGIN
from gm_chat.host.problems import Failed, Origin, Problem, attempt, one_line
from gm_chat.planned.catalog import (
    CatalogError,
    ManagerCatalog,
    ManagerCatalogEntry,
    load_manager_catalog,
    read_catalog,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from gm_chat.plugin import CatalogSpec

__all__ = ["Catalogs", "load_catalogs"]

HOOK: Final = "gm_chat_catalogs"
NAMED: Final = 10
"""How many managers a finding names."""

T = TypeVar("T")
logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Catalogs:
    """What all catalogs come to. ``problems`` are warnings about plugins' catalogs."""

    catalog: ManagerCatalog
    problems: tuple[Problem, ...] = ()


def load_catalogs(specs: Iterable[tuple[Origin, CatalogSpec]], known: Mapping[str, Any]) -> Catalogs:
    """Load and merge the catalogs in this order, for the managers in ``known``.

    Raises :class:`~gm_chat.settings.ChatConfigurationError` if the setting's catalog cannot be used. Blocking: a
    catalog may read files and the database.
    """
    entries: dict[str, ManagerCatalogEntry] = {}
    owners: dict[str, tuple[Origin, CatalogSpec]] = {}
    problems: list[Problem] = []
    for origin, spec in specs:
        if origin.plugin == CORE_PLUGIN:
            loaded = dict(_apart(partial(load_manager_catalog, spec.load, known)).entries)
        else:
            loaded, faults = _of_plugin(spec, known)
            problems += [origin.problem("warning", f"its catalog {spec.name!r} {fault}", hook=HOOK) for fault in faults]
        taken = sorted(loaded.keys() & entries.keys())
        problems += _conflicts(origin, spec, taken, owners)
        entries = loaded | entries
        owners |= {name: (origin, spec) for name in loaded if name not in owners}
    for problem in problems:
        logger.warning("%s", problem)
    return Catalogs(ManagerCatalog.of(entries), tuple(problems))


def _of_plugin(spec: CatalogSpec, known: Mapping[str, Any]) -> tuple[dict[str, ManagerCatalogEntry], list[str]]:
    """The entries that can be used, and in words what is wrong with the others."""
    raw = attempt(lambda: dict(_apart(partial(read_catalog, spec.load))))
    if isinstance(raw, Failed):
        return {}, [f"is not used: {_reason(raw)}."]
    entries: dict[str, ManagerCatalogEntry] = {}
    faults: list[str] = []
    for name in sorted(raw.keys() & known.keys()):
        entry = attempt(partial(ManagerCatalogEntry.parse, name, raw[name]))
        if isinstance(entry, Failed):
            faults.append(f"has an entry that is not used: {_reason(entry)}.")
        else:
            entries[name] = entry
    if unknown := sorted(raw.keys() - known.keys()):
        faults.append(f"speaks of managers that are not exposed: {_named(unknown)}.")
    return entries, faults


def _conflicts(
    origin: Origin, spec: CatalogSpec, taken: Iterable[str], owners: Mapping[str, tuple[Origin, CatalogSpec]]
) -> list[Problem]:
    """Name what others have said before. That the setting overrides a plugin is meant, and only logged."""
    by_owner: dict[tuple[str, str], list[str]] = {}
    for name in taken:
        owner, other = owners[name]
        by_owner.setdefault((owner.plugin, other.name), []).append(name)
    problems = []
    for (plugin, catalog), names in by_owner.items():
        message = f"its catalog {spec.name!r} is not heard about {_named(names)}: "
        if plugin == CORE_PLUGIN:
            logger.info("%s", origin.problem("warning", f"{message}the setting's is.", hook=HOOK))
        else:
            what = f"{catalog!r} of plugin {plugin!r} comes first. An entry in planned['catalog'] decides."
            problems.append(origin.problem("warning", message + what, hook=HOOK))
    return problems


def _reason(failed: Failed) -> str:
    return one_line(failed.text) if isinstance(failed.error, CatalogError) else str(failed)


def _named(names: list[str]) -> str:
    shown = ", ".join(one_line(name[:80]) for name in names[:NAMED])
    return shown if len(names) <= NAMED else f"{shown} and {len(names) - NAMED} more"


def _apart(call: Callable[[], T]) -> T:
    """Run foreign code where it may use the ORM, which Django refuses to a thread that runs an event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return call()
    with ThreadPoolExecutor(1, "gm-chat-catalog") as thread:
        return thread.submit(_closing, call).result()


def _closing(call: Callable[[], T]) -> T:
    try:
        return call()
    finally:
        connections.close_all()
