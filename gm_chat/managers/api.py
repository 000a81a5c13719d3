"""The public types between tools, the schema index and manager sources.

Data flows one way: a source *describes* its managers (:class:`ManagerInfo`), the index is built from all
descriptions, an actor's :class:`Visibility` masks it, a tool's arguments become a :class:`QueryPlan` or
:class:`MutationCall` over what is visible, and the source executes it. Standard library only: a source for a
foreign system needs nothing else of ours but ``gm_chat.plugin``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gm_chat.managers.measures import AggregatePage, AggregatePlan
    from gm_chat.planned.catalog import ManagerCatalog
    from gm_chat.plugin.context import Actor

__all__ = [
    "And",
    "Condition",
    "DatePart",
    "FieldInfo",
    "FieldReference",
    "FieldType",
    "First",
    "InputInfo",
    "Key",
    "ManagerInfo",
    "ManagerService",
    "ManagerView",
    "ManagerVisibility",
    "MutationCall",
    "MutationInfo",
    "Not",
    "Or",
    "Order",
    "Path",
    "QueryPage",
    "QueryPlan",
    "Related",
    "RelationInfo",
    "RelationSelection",
    "Selection",
    "Visibility",
    "Where",
]

FieldType = Literal[
    "string",
    "integer",
    "number",
    "decimal",
    "boolean",
    "date",
    "datetime",
    "time",
    "duration",
    "uuid",
    "json",
    "binary",
]

DatePart = Literal[
    "year", "quarter", "month", "week", "day", "hour", "weekday", "month_of_year", "day_of_month", "hour_of_day"
]
"""Parts of dates and moments, in the current time zone. ``year``, ``weekday`` (1 is Monday, 7 Sunday) and those with
``_of_`` are numbers, the others truncations: ``month`` is the month's first day, ``week`` its Monday."""

Path = tuple[str, ...]
"""Relation names, then one field name: ``("album", "artist", "name")``."""


# --- description: what exists -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldInfo:
    """A scalar field. ``choices`` are (value, label) pairs; ``lookups`` are what a filter may apply to it.

    A ``key`` identifies a row by itself: it answers to ``id`` too, and stands for a relation that is named alone.
    """

    name: str
    type: FieldType
    description: str = ""
    nullable: bool = False
    choices: tuple[tuple[Any, str], ...] = ()
    lookups: tuple[str, ...] = ()
    computed: bool = False
    key: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationInfo:
    """A relation to another manager, by that manager's name."""

    name: str
    target: str
    many: bool
    description: str = ""
    nullable: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class InputInfo:
    """One argument of a mutation. ``relation`` names the manager whose id the argument is."""

    name: str
    type: FieldType
    required: bool = False
    nullable: bool = False
    description: str = ""
    choices: tuple[tuple[Any, str], ...] = ()
    relation: str | None = None
    many: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MutationInfo:
    """A write. ``name`` is the GraphQL name that allow-lists use, e.g. ``createPart``."""

    name: str
    manager: str
    kind: Literal["create", "update", "delete", "custom"]
    inputs: tuple[InputInfo, ...] = ()
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagerInfo:
    """A business object: its name and description are what the model reads.

    ``aliases`` are what people call it, ``domain`` is the business that it belongs to, ``use_when`` says in a sentence
    which questions it answers, and ``distinguish_from`` names the managers that it is easily mistaken for. A source may
    say so, and a catalog adds to it. ``from_data``: names or descriptions in it are no words of the project's
    developers but come from records, which anybody may have written; see ``taint_mutations``.
    """

    name: str
    description: str
    fields: tuple[FieldInfo, ...]
    relations: tuple[RelationInfo, ...] = ()
    mutations: tuple[MutationInfo, ...] = ()
    aliases: tuple[str, ...] = ()
    public: bool = False
    exposed: bool = True
    domain: str = ""
    use_when: str = ""
    distinguish_from: tuple[str, ...] = ()
    from_data: bool = False


@dataclass(frozen=True, slots=True)
class ManagerVisibility:
    """What one actor may see of one manager; ``rows_may_be_hidden`` depends on manager and actor, never on data."""

    fields: frozenset[str]
    relations: frozenset[str]
    mutations: frozenset[str]
    rows_may_be_hidden: bool = False


@dataclass(frozen=True, slots=True)
class Visibility:
    """What one actor may see of a source. ``fingerprint`` is equal for equal rights: masks are cached by it."""

    fingerprint: str
    managers: Mapping[str, ManagerVisibility]


# --- query plan: what is asked ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RelationSelection:
    """A nested selection. To-many rows are bounded by ``limit`` per parent."""

    name: str
    selection: Selection
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Selection:
    """The fields and relations of one level, in the order in which they were asked for."""

    fields: tuple[str, ...]
    relations: tuple[RelationSelection, ...] = ()


@dataclass(frozen=True, slots=True)
class FieldReference:
    """Another field to compare with, through relations that lead to one row; ``plus`` moves it by (count, unit).

    An ``outer`` one is a field of the row that the whole condition is about, however many :class:`Related` lie between.
    """

    path: Path
    type: FieldType
    part: Literal["year", "month", "day"] | None = None
    plus: tuple[int, str] | None = None
    outer: bool = False


@dataclass(frozen=True, slots=True)
class Condition:
    """``path lookup value``, with the value already of the field's type, or a :class:`FieldReference`.

    A lookup of a date's part may go on with a comparison: ``weekday__in``; Monday is 1.
    """

    path: Path
    lookup: str
    value: Any


@dataclass(frozen=True, slots=True)
class And:
    """All parts hold; no part means true."""

    parts: tuple[Where, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """At least one part holds; no part means false."""

    parts: tuple[Where, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """The part does not hold."""

    part: Where


@dataclass(frozen=True, slots=True)
class Related:
    """At least one visible row behind ``relation`` satisfies ``part``, whose paths start there.

    ``And(())`` as the part asks only that such a row exists.
    """

    relation: str
    part: Where


@dataclass(frozen=True, slots=True)
class Order:
    """One ordering term; nulls come last in both directions."""

    path: Path
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Key:
    """What rows are grouped by: a field, through relations that lead to one row, or a part of its date."""

    path: Path
    part: DatePart | None = None


@dataclass(frozen=True, slots=True)
class First:
    """Of the visible rows that satisfy ``where`` and share the values ``per``, the row comes first in ``order``.

    Without ``per`` it is the first of all. Among equals every row counts as first with ``ties``, else the one with the
    smallest key. ``where`` is a condition of its own: an outer reference in it means the row that it is about.
    """

    per: tuple[Key, ...]
    order: tuple[Order, ...]
    where: And = field(default_factory=lambda: And(()))
    ties: bool = False


Where = Condition | And | Or | Not | Related | First


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """A validated read. Every path exists and is visible to the actor; sizes are within the caps.

    ``nested_rows`` bounds what one to-many relation brings over the whole page: with many parents, each of its lists
    gets an equal share. ``max_bytes`` bounds the page's JSON.
    """

    manager: str
    selection: Selection
    where: And = field(default_factory=lambda: And(()))
    order: tuple[Order, ...] = ()
    limit: int = 200
    offset: int = 0
    max_bytes: int | None = None
    nested_rows: int = 20_000


@dataclass(frozen=True, slots=True)
class QueryPage:
    """One page. ``total_count`` is exact; ``truncated`` says that whole rows were dropped at the byte budget.

    ``cut_lists`` names the nested lists, as paths, of which some parent shows only its first rows.
    """

    data: Sequence[Mapping[str, Any]]
    total_count: int
    has_more: bool
    truncated: bool = False
    cut_lists: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class MutationCall:
    """A validated write: ``values`` are coerced to the inputs' types.

    It must not run, but raise ``ToolError("conflict")``, unless the row still has the ``expected`` values (of fields
    and to-one relations that the actor sees), and what ``shown``, a preview that was approved, told of it.
    """

    mutation: MutationInfo
    values: Mapping[str, Any]
    expected: Mapping[str, Any] = field(default_factory=dict)
    shown: Mapping[str, Any] | None = None


# --- services: what tools and engine use ------------------------------------------------------------------------


class ManagerView(Protocol):
    """The schema index as one actor sees it: hidden things do not exist in it."""

    fingerprint: str

    def __iter__(self) -> Iterator[ManagerInfo]:
        """Visible managers, by name; their fields, relations and mutations are masked too."""
        ...

    def get(self, name: str) -> ManagerInfo | None:
        """The manager of that exact name, or ``None`` for unknown and hidden alike."""
        ...

    def mutation(self, name: str) -> MutationInfo | None:
        """The mutation of that exact name; ``None`` if unknown, not the actor's to run or not allowed in this chat."""
        ...

    def search(self, query: str, *, limit: int = 10) -> Sequence[ManagerInfo]:
        """Managers ranked for a free-text query; blank gives none."""
        ...

    def find_paths(self, from_manager: str, to_manager: str, *, limit: int = 1) -> Sequence[Path]:
        """Shortest relation paths, best first; ``[()]`` for the same manager, ``[]`` for none."""
        ...

    @property
    def hubs(self) -> frozenset[str]:
        """Visible managers that so many others point to that a path through them says little."""
        ...

    @property
    def catalog(self) -> ManagerCatalog:
        """What people call the visible managers, and how to tell them apart; no hidden one is named."""
        ...

    def rows_may_be_hidden(self, name: str) -> bool:
        """Whether the actor's rights may hide rows of the manager."""
        ...


class ManagerService(Protocol):
    """What a tool may do with managers, always as a given actor."""

    async def view(self, actor: Actor) -> ManagerView:
        """The actor's view of the index; cheap, cached by rights."""
        ...

    async def query(self, plan: QueryPlan, actor: Actor, *, deadline: float | None) -> QueryPage:
        """Run a plan on the source that owns its manager."""
        ...

    async def aggregate(self, plan: AggregatePlan, actor: Actor, *, deadline: float | None) -> AggregatePage:
        """Run a computation on the source that owns its manager; ``ToolError("unsupported")`` where it cannot."""
        ...

    async def mutate(self, call: MutationCall, actor: Actor, *, deadline: float | None) -> Mapping[str, Any]:
        """Run a mutation on the source that owns it."""
        ...

    async def preview(self, call: MutationCall, actor: Actor, *, deadline: float | None) -> Mapping[str, Any] | None:
        """What the mutation would do, as the actor may see it; ``None`` where its source cannot tell.

        Raises the ``ToolError`` that the mutation itself would.
        """
        ...
