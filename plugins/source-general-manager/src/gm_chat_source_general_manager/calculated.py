"""Managers without a table (calculations, remote requests, spreadsheets), read through GeneralManager's GraphQL schema.

The schema pages by at most 100 rows, gives ten of a nested list where nobody says how many, and an object of nulls for
a row that the user may not read: the schema executor asks for every page and every size, and takes such an object for
null. Filters and orders are the schema's where a field has no rule of its own, since it would find by what it hides.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from general_manager import GraphQL
from gm_chat_source_graphql.aggregate import run_aggregate
from gm_chat_source_graphql.context import ChatRequest
from gm_chat_source_graphql.deadline import watched
from gm_chat_source_graphql.describe import Binding, Relation, is_bare_key, members_of
from gm_chat_source_graphql.execute import Reader, run_plan
from gm_chat_source_graphql.library import Executable, executable
from gm_chat_source_graphql.shapes import bare, filters_of, list_shape, order_of
from gm_chat_source_graphql.values import Scalar, nullable

from gm_chat.managers.api import FieldInfo, ManagerInfo, RelationInfo
from gm_chat.managers.orm import LOOKUPS, is_secret_name
from gm_chat.plugin import ToolError
from gm_chat_source_general_manager.describe import text_of
from gm_chat_source_general_manager.options import ManagerOptions
from gm_chat_source_general_manager.rights import Gate, user_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gm_chat_source_graphql.shapes import ListShape
    from graphql import GraphQLObjectType, GraphQLSchema

    from gm_chat.managers.api import FieldType, QueryPage, QueryPlan
    from gm_chat.managers.measures import AggregatePage, AggregatePlan
    from gm_chat.plugin import Actor
    from gm_chat_source_general_manager.describe import ModelManagers
    from gm_chat_source_general_manager.options import Options

__all__ = ["Calculated"]

_PAGE: Final = 100
"""What the schema allows."""
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SAME: Final[Mapping[str, frozenset[FieldType]]] = {
    "ID": frozenset({"integer", "string", "uuid"}),
    "Float": frozenset({"number", "decimal"}),
    "Int": frozenset({"integer"}),
    "BigInt": frozenset({"integer"}),
    "BigIntScalar": frozenset({"integer"}),
    "String": frozenset({"string", "uuid", "duration", "time"}),
    "Boolean": frozenset({"boolean"}),
    "Date": frozenset({"date"}),
    "DateTime": frozenset({"datetime"}),
}
"""Which types of columns arrive whole through which scalars: a moment loses its time as a ``Date``."""


@dataclass(frozen=True, slots=True)
class Measured(Scalar):
    """A number with a unit, which the schema gives as an object."""

    def parse(self, raw: Any) -> Any:
        """The number, a space and the unit."""
        return None if raw is None or raw["value"] is None else f"{raw['value']} {raw['unit']}".rstrip()


class _Known(dict[str, Any]):
    """What the schema has of a manager, by our names."""

    def __init__(self, manager: str, items: Mapping[str, Any]) -> None:
        super().__init__(items)
        self._manager = manager

    def __missing__(self, name: str) -> Any:
        raise ToolError(
            "unsupported",
            f"{name!r} of {self._manager} cannot be asked for through a calculated manager; "
            f"query {self._manager} itself",
        )


@dataclass(frozen=True, slots=True)
class Calculated:
    """The managers without a table, and how all managers look to the schema."""

    infos: Mapping[str, ManagerInfo]
    gates: Mapping[str, Gate]
    bindings: Mapping[str, Binding]
    schema: Executable | None
    limit: int

    @classmethod
    def of(cls, exposed: Mapping[str, Any], models: ModelManagers, options: Options) -> Calculated:
        """Describe them. Where the project makes no GraphQL schema there are none."""
        schema = GraphQL.get_schema()
        if schema is None:
            return cls({}, {}, {}, None, options.max_rows)
        found = executable(schema)
        lists = dict(_lists(exposed, found.schema))
        owners = {shape.node: name for name, (_, shape) in lists.items()}
        bindings: dict[str, Binding] = {}
        gates: dict[str, Gate] = {}
        for name, (root, shape) in lists.items():
            if name in models.bindings:
                bindings[name] = _of_model(name, root, shape, owners, models)
            else:
                chosen = options.managers.get(name, ManagerOptions())
                bindings[name], gates[name] = _calculated(exposed[name], root, shape, owners, chosen)
        return cls({name: bindings[name].info for name in gates}, gates, bindings, found, options.max_rows)

    def execute(self, plan: QueryPlan, actor: Actor, deadline: float | None) -> QueryPage:
        """Run a plan whose manager is one of :attr:`infos`. Blocking."""
        with watched(deadline):
            return run_plan(plan, self._reader(actor))

    def aggregate(self, plan: AggregatePlan, actor: Actor, deadline: float | None) -> AggregatePage:
        """Run a computation over one of :attr:`infos`. Blocking."""
        with watched(deadline):
            return run_aggregate(plan, self._reader(actor))

    def _reader(self, actor: Actor) -> Reader:
        if self.schema is None:
            raise LookupError("the project has no GraphQL schema")
        request = ChatRequest()
        request.method = "POST"
        request.user = user_of(actor)
        return Reader(self.schema, self.bindings, request, self.limit, _PAGE)


def _lists(exposed: Mapping[str, Any], schema: GraphQLSchema) -> Iterator[tuple[str, tuple[str, ListShape]]]:
    """The list field of each class: that of its own type."""
    fields = {} if schema.query_type is None else schema.query_type.fields
    shapes = {root: shape for root, field in fields.items() if (shape := list_shape(field)) is not None}
    types = GraphQL.graphql_type_registry
    for name in exposed:
        own = getattr(getattr(types.get(name), "_meta", None), "name", None)
        for root, shape in shapes.items():
            if shape.node.name == own:
                yield name, (root, shape)
                break


def _calculated(
    manager: Any, root: str, shape: ListShape, owners: Mapping[GraphQLObjectType, str], chosen: ManagerOptions
) -> tuple[Binding, Gate]:
    raw_scalars, raw_relations = members_of(shape.node, owners)
    raw_scalars |= {name: _MEASURED for name, item in shape.node.fields.items() if _is_measured(item)}
    names = {_snake(name): name for name in (*raw_scalars, *raw_relations)}
    wanted = chosen.fields
    shown = {
        ours: name
        for ours, name in names.items()
        if (ours in wanted if wanted is not None else not (is_secret_name(ours) or is_bare_key(name, shape.node)))
    }
    gate = Gate.of(manager, {ours: _attribute(manager, name) for ours, name in shown.items()})
    scalars = {ours: raw_scalars[name] for ours, name in shown.items() if name in raw_scalars}
    relations = {ours: raw_relations[name] for ours, name in shown.items() if name in raw_relations}
    plain = {
        ours: scalar
        for ours, scalar in scalars.items()
        if gate.is_declared and ours not in gate.by_row and ours not in gate.by_user and not scalar.selection
    }
    info = ManagerInfo(
        name=manager.__name__,
        description=text_of(manager, chosen) or manager.__name__,
        fields=tuple(_field(ours, scalar, computed=ours in gate.by_row) for ours, scalar in scalars.items()),
        relations=tuple(
            RelationInfo(name=ours, target=item.target, many=item.shape is not None) for ours, item in relations.items()
        ),
        aliases=chosen.aliases,
    )
    binding = Binding(
        info, root, shape, scalars, relations, None, filters_of(shape, plain), order_of(shape, plain), shown
    )
    return binding, gate


def _field(name: str, scalar: Scalar, *, computed: bool) -> FieldInfo:
    is_shown_only = computed or bool(scalar.selection)
    return FieldInfo(
        name=name,
        type=scalar.type,
        nullable=True,
        choices=scalar.choices,
        lookups=() if is_shown_only else LOOKUPS[scalar.type],
        computed=is_shown_only,
    )


def _of_model(
    name: str, root: str, shape: ListShape, owners: Mapping[GraphQLObjectType, str], models: ModelManagers
) -> Binding:
    """A manager with a table as the schema shows it to those that lead to it: what arrives as the table has it."""
    binding, gate = models.bindings[name], models.gates[name]
    raw_scalars, raw_relations = members_of(shape.node, owners)
    spelled = {bare(each): each for each in shape.node.fields}
    names = {ours: spelled.get(bare(attribute), "") for ours, attribute in gate.attributes.items()}
    scalars: dict[str, Scalar] = {}
    for item in binding.info.fields:
        raw = raw_scalars.get(names.get(item.name, ""))
        if raw is not None and item.type in _SAME.get(raw.name, ()):
            scalars[item.name] = Scalar(item.type, raw.name)
    relations = {
        item.name: Relation(item.target, raw_relations[names[item.name]].shape)
        for item in binding.info.relations
        if names.get(item.name) in raw_relations
    }
    key = next((item.name for item in binding.info.fields if item.key and item.name in scalars), None)
    return Binding(binding.info, root, shape, _Known(name, scalars), _Known(name, relations), key, {}, None, names)


_MEASURED: Final = Measured("string", "Measurement", selection=" { value unit }")


def _is_measured(field: Any) -> bool:
    return getattr(nullable(field.type), "name", "") == "MeasurementType"


def _snake(name: str) -> str:
    return _HUMP.sub("_", name).lower()


def _attribute(manager: Any, name: str) -> str:
    """GeneralManager's name of what the schema calls so."""
    known = (*manager.Interface.get_attribute_types(), *manager.Interface.get_graph_ql_properties())
    return next((each for each in known if bare(each) == bare(name)), _snake(name))
