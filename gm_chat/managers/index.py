"""The index of all managers: built once from every source, immutable, and masked for each actor.

A mask never copies the index. It holds the actor's :class:`~gm_chat.managers.api.Visibility` and narrows a
manager's description when it is asked for; actors with equal rights share one mask.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import is_
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeVar

from gm_chat.managers.paths import RelationGraph
from gm_chat.managers.search import SearchIndex
from gm_chat.planned.catalog import ManagerCatalog, ManagerCatalogEntry, normalize_match_text

if TYPE_CHECKING:
    from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence

    from gm_chat.managers.api import (
        FieldInfo,
        InputInfo,
        ManagerInfo,
        ManagerVisibility,
        MutationInfo,
        Path,
        RelationInfo,
        Visibility,
    )

__all__ = ["DuplicateNameError", "MaskedView", "SchemaIndex"]

T = TypeVar("T")

VIEWS_KEPT: Final = 256
"""How many masks an index keeps: one for each set of rights that is in use."""


class DuplicateNameError(ValueError):
    """Two managers, or two mutations, share a name; the message names both owners."""


@dataclass(frozen=True, slots=True, eq=False)
class SchemaIndex:
    """All exposed managers. ``notes`` say which relations were dropped because their target is not among them."""

    managers: Mapping[str, ManagerInfo]
    mutations: Mapping[str, MutationInfo]
    notes: tuple[str, ...]
    search: SearchIndex = field(repr=False)
    _views: _Views = field(repr=False)

    @classmethod
    def build(cls, infos: Iterable[ManagerInfo], catalog: ManagerCatalog | None = None) -> SchemaIndex:
        """Index the exposed ones of ``infos``, with a catalog's words; raises :class:`DuplicateNameError`.

        An entry of the catalog for any other manager has no effect.
        """
        exposed: dict[str, ManagerInfo] = {}
        for info in sorted((item for item in infos if item.exposed), key=lambda item: item.name):
            if info.name in exposed:
                raise DuplicateNameError(f"two managers are named {info.name!r}; names are unique over all sources")
            entry = catalog.entries.get(info.name) if catalog is not None else None
            exposed[info.name] = info if entry is None else _with_words(info, entry)
        notes: list[str] = []
        managers = {name: _without_loose_ends(info, exposed, notes) for name, info in exposed.items()}
        mutations: dict[str, MutationInfo] = {}
        for info in managers.values():
            for mutation in info.mutations:
                other = mutations.setdefault(mutation.name, mutation)
                if other is not mutation:
                    raise DuplicateNameError(
                        f"{other.manager!r} and {mutation.manager!r} both offer the mutation {mutation.name!r}; "
                        "rename one of the managers"
                    )
        search = SearchIndex(managers.values())
        return cls(MappingProxyType(managers), MappingProxyType(mutations), tuple(notes), search, _Views())

    def view(self, visibility: Visibility) -> MaskedView:
        """The index as an actor with these rights sees it. Cheap: equal fingerprints share one view."""
        view = self._views.get(visibility.fingerprint)
        return self._views.keep(MaskedView(self, visibility)) if view is None else view

    def kept_view(self, fingerprint: str) -> MaskedView | None:
        """The view of that fingerprint, if it was asked for lately."""
        return self._views.get(fingerprint)


def _with_words(info: ManagerInfo, entry: ManagerCatalogEntry) -> ManagerInfo:
    """Add a catalog's words; what it says of domain and use counts more than what the source says."""
    declared = {normalize_match_text(alias) for alias in info.aliases}
    return replace(
        info,
        aliases=(*info.aliases, *(alias for alias in entry.aliases if alias not in declared)),
        domain=entry.domain or info.domain,
        use_when=entry.use_when or info.use_when,
        distinguish_from=tuple(dict.fromkeys((*info.distinguish_from, *entry.distinguish_from))),
    )


def _without_loose_ends(info: ManagerInfo, known: Mapping[str, ManagerInfo], notes: list[str]) -> ManagerInfo:
    loose = [item for item in info.relations if item.target not in known]
    if not loose and all(name in known for name in info.distinguish_from):
        return info
    notes += [f"{info.name}.{item.name} is left out: there is no exposed manager {item.target!r}" for item in loose]
    return _narrow(info, fields={item.name for item in info.fields}, relations=None, targets=known)


def _narrow(
    info: ManagerInfo,
    *,
    fields: Collection[str],
    relations: Collection[str] | None,
    targets: Container[str],
    mutations: Collection[str] | None = None,
) -> ManagerInfo:
    """Keep the named members and mutations (``None``: all); relations, inputs and words only about ``targets``.

    What is kept whole is the very same object.
    """
    kept_fields = _kept(info.fields, [item for item in info.fields if item.name in fields])
    shown = [item for item in info.relations if item.target in targets]
    kept_relations = _kept(info.relations, [item for item in shown if relations is None or item.name in relations])
    allowed = [item for item in info.mutations if mutations is None or item.name in mutations]
    if allowed:
        hidden = _names(info.fields, info.relations) - _names(kept_fields, kept_relations)
        narrowed = [_narrow_inputs(item, hidden, targets) for item in allowed]
        allowed = [item for item in narrowed if item is not None]
    kept: dict[str, Any] = {
        "fields": kept_fields,
        "relations": kept_relations,
        "mutations": _kept(info.mutations, allowed),
        "distinguish_from": _kept(info.distinguish_from, [name for name in info.distinguish_from if name in targets]),
    }
    return info if all(value is getattr(info, name) for name, value in kept.items()) else replace(info, **kept)


def _kept(whole: tuple[T, ...], items: Sequence[T]) -> tuple[T, ...]:
    """The items as a tuple: the very same one if nothing was left out or changed."""
    return whole if len(items) == len(whole) and all(map(is_, items, whole)) else tuple(items)


def _names(fields: Iterable[FieldInfo], relations: Iterable[RelationInfo]) -> frozenset[str]:
    return frozenset({item.name for item in fields} | {item.name for item in relations})


def _narrow_inputs(mutation: MutationInfo, hidden: Container[str], targets: Container[str]) -> MutationInfo | None:
    """The mutation without inputs for hidden members; ``None`` if it requires one of them."""
    kept: list[InputInfo] = []
    for item in mutation.inputs:
        identity = item.name == "id" and mutation.kind != "create"
        if identity or (item.name not in hidden and (item.relation is None or item.relation in targets)):
            kept.append(item)
        elif item.required:
            return None
    return mutation if len(kept) == len(mutation.inputs) else replace(mutation, inputs=tuple(kept))


class MaskedView:
    """The index as one actor sees it (a :class:`~gm_chat.managers.api.ManagerView`)."""

    def __init__(self, index: SchemaIndex, visibility: Visibility) -> None:
        """Made by :meth:`SchemaIndex.view`, which keeps it."""
        self.fingerprint = visibility.fingerprint
        self._index = index
        self._rights: dict[str, ManagerVisibility] = {
            name: visibility.managers[name] for name in index.managers if name in visibility.managers
        }
        self._masked: dict[str, ManagerInfo] = {}

    def __iter__(self) -> Iterator[ManagerInfo]:
        """Visible managers by name."""
        return (self._mask(name) for name in self._rights)

    def get(self, name: str) -> ManagerInfo | None:
        """The visible manager of that exact name."""
        return self._mask(name) if name in self._rights else None

    def mutation(self, name: str) -> MutationInfo | None:
        """The permitted mutation of that exact name."""
        known = self._index.mutations.get(name)
        info = self.get(known.manager) if known is not None else None
        return next((item for item in info.mutations if item.name == name), None) if info is not None else None

    def search(self, query: str, *, limit: int = 10) -> Sequence[ManagerInfo]:
        """Visible managers ranked for free text; what is hidden has no influence on the ranking."""
        return [self._mask(name) for name in self._index.search.rank(query, self._members, limit=limit)]

    def find_paths(self, from_manager: str, to_manager: str, *, limit: int = 1) -> Sequence[Path]:
        """Shortest paths over visible relations."""
        return self._graph.paths(from_manager, to_manager, limit=limit)

    @property
    def hubs(self) -> frozenset[str]:
        """Visible managers that so many others point to that a path through them says little."""
        return self._graph.hubs

    @cached_property
    def catalog(self) -> ManagerCatalog:
        """What people call the visible managers, and how to tell them apart; no hidden one is named."""
        return ManagerCatalog.of(
            {
                info.name: ManagerCatalogEntry(
                    domain=info.domain,
                    aliases=tuple(sorted({normalize_match_text(alias) for alias in info.aliases})),
                    use_when=info.use_when,
                    distinguish_from=tuple(sorted(info.distinguish_from)),
                )
                for info in self
                if info.aliases or info.domain or info.use_when or info.distinguish_from
            }
        )

    def rows_may_be_hidden(self, name: str) -> bool:
        """Whether the actor's rights may hide rows of the manager; false for one that is not visible."""
        return name in self._rights and self._rights[name].rows_may_be_hidden

    def _mask(self, name: str) -> ManagerInfo:
        masked = self._masked.get(name)
        if masked is None:
            rights = self._rights[name]
            masked = self._masked[name] = _narrow(
                self._index.managers[name],
                fields=rights.fields,
                relations=rights.relations,
                mutations=rights.mutations,
                targets=self._rights,
            )
        return masked

    @cached_property
    def _graph(self) -> RelationGraph:
        return RelationGraph({name: self._mask(name).relations for name in self._rights})

    @cached_property
    def _members(self) -> dict[str, frozenset[str] | None]:
        """For the search: each visible manager's visible members, ``None`` where that is all of them."""
        members: dict[str, frozenset[str] | None] = {}
        for name in self._rights:
            whole, masked = self._index.managers[name], self._mask(name)
            is_whole = masked.fields is whole.fields and masked.relations is whole.relations
            members[name] = None if is_whole else _names(masked.fields, masked.relations)
        return members


class _Views:
    """The masks in use, the least recently used ones dropped."""

    __slots__ = ("_lock", "_views")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._views: OrderedDict[str, MaskedView] = OrderedDict()

    def get(self, fingerprint: str) -> MaskedView | None:
        with self._lock:
            view = self._views.get(fingerprint)
            if view is not None:
                self._views.move_to_end(fingerprint)
            return view

    def keep(self, view: MaskedView) -> MaskedView:
        with self._lock:
            view = self._views.setdefault(view.fingerprint, view)
            if len(self._views) > VIEWS_KEPT:
                self._views.popitem(last=False)
            return view
