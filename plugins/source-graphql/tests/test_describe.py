"""What becomes a manager, a field, a relation; what the settings may say, and what is said about mistakes."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest
from desks import LIBRARIES, Desk, graphql_source, run
from gm_chat_source_graphql import GraphQLSource, Options
from gm_chat_source_graphql.describe import describe
from gm_chat_source_graphql.library import executable
from gm_chat_source_graphql.shapes import list_shape
from graphql import GraphQLSchema, build_schema, version_info

from gm_chat.managers.index import SchemaIndex
from gm_chat.plugin import Actor

if TYPE_CHECKING:
    from gm_chat.managers.api import ManagerInfo


def infos(sdl: str, managers: Any = "*") -> dict[str, ManagerInfo]:
    bindings = describe(build_schema(sdl), Options(schema="a.b", managers=managers))
    return {name: binding.info for name, binding in bindings.items()}


def test_the_libraries_that_must_be_here_are() -> None:
    is_new = version_info[:2] >= (3, 3)
    assert (["strawberry", "ariadne"] if is_new else ["graphene", "strawberry", "ariadne"]) == LIBRARIES


def test_the_libraries_describe_the_same_shop() -> None:
    for library in LIBRARIES:
        found = {info.name: info for info in graphql_source(library).describe()}
        assert set(found) == {"PartManager", "MaterialManager", "SupplierManager", "TagManager"}
        part = found["PartManager"]
        types = {item.name: item.type for item in part.fields}
        assert types.pop("cost", None) in (None, "decimal")
        texts = dict.fromkeys(("id", "number", "name", "status"), "string")
        others = {"price": "decimal", "weight": "number", "purchased": "boolean", "releasedOn": "date"}
        expected = {
            **texts,
            **others,
            "createdAt": "datetime",
        }  # supplierId, which betrays hidden suppliers, is left out
        assert types == expected
        assert {(item.name, item.target, item.many) for item in part.relations} == {
            ("material", "MaterialManager", False),
            ("supplier", "SupplierManager", False),
            ("tags", "TagManager", True),
        }
        status = next(item for item in part.fields if item.name == "status")
        assert [value for value, _ in status.choices] == ["draft", "released", "obsolete"]
        assert found["MaterialManager"].description == "What parts are made of."
        assert "apiToken" not in {item.name for item in found["SupplierManager"].fields}
        assert not any(info.mutations for info in found.values())


def test_only_what_is_named_is_exposed() -> None:
    chosen = {"parts": {"name": "ItemManager", "description": "Items.", "aliases": ["component"], "fields": ["number"]}}
    (info,) = graphql_source("strawberry", managers=chosen).describe()
    assert (info.name, info.description, info.aliases) == ("ItemManager", "Items.", ("component",))
    assert [item.name for item in info.fields] == ["number"]
    assert info.relations == ()
    names = [info.name for info in graphql_source("strawberry", managers=["tags", "parts"]).describe()]
    assert names == ["TagManager", "PartManager"]
    rest = graphql_source("strawberry", managers={"*": {}, "parts": {"name": "ItemManager"}}).describe()
    assert {info.name for info in rest} == {"ItemManager", "MaterialManager", "SupplierManager", "TagManager"}


def test_a_secret_is_shown_when_it_is_asked_for() -> None:
    chosen = {"suppliers": {"fields": ["name", "apiToken"]}}
    (info,) = graphql_source("ariadne", managers=chosen).describe()
    assert [item.name for item in info.fields] == ["name", "apiToken"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"managers": ["partz"]}, "'partz' is no field of the query type; did you mean 'parts'?"),
        ({"managers": {"parts": {"fields": ["numbr"]}}}, "'numbr' is no field that can be shown of Part; did you mean"),
        ({"managers": {"parts": {"name": "X"}, "tags": {"name": "X"}}}, "'parts' and 'tags' both make a 'X'"),
        ({"mutations": ["createPrt"]}, "there is no 'createPrt'; did you mean 'createPart'?"),
        ({"mutations": {"createPart": "Nope"}}, "'createPart' belongs to no exposed manager"),
        ({"managers": ["tags"], "mutations": ["createPart"]}, "belongs to no exposed manager; name it"),
    ],
)
def test_mistakes_name_the_setting(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match="plugins\\['graphql'\\]") as caught:
        graphql_source("strawberry", **options).describe()
    assert message in str(caught.value)


def test_what_is_no_schema() -> None:
    with pytest.raises(TypeError, match="is a function; expected a schema"):
        GraphQLSource(Options(schema="shop_schemas.parts_for", managers="*")).describe()
    with pytest.raises(ImportError):
        GraphQLSource(Options(schema="shop_schemas.nowhere.schema", managers="*")).describe()


def test_public_managers_are_for_everybody() -> None:
    desk = Desk(graphql_source("ariadne", managers={"parts": {}, "tags": {"public": True}}), Actor())
    assert [info.name for info in desk.view()] == ["TagManager"]
    assert desk.view().get("PartManager") is None
    inactive = Actor(user_id="1", user=type("User", (), {"is_active": False})())
    assert run(desk.source.visibility(inactive)) == run(desk.source.visibility(Actor()))


SHAPES = """
type Thing { id: ID! }
type Edge { node: Thing, cursor: String! }
type PageInfo { hasNextPage: Boolean!, endCursor: String, totalCount: Int }
type Relay { edges: [Edge]!, pageInfo: PageInfo! }
type Nodes { nodes: [Thing!]!, total: Int! }
type Other { results: [Thing!]! }
input Window { offset: Int! = 0, limit: Int }
type Query {
  plain: [Thing!]!
  maybe: [Thing]
  relay(first: Int, after: String): Relay!
  nodes(page: Int, per_page: Int): Nodes!
  window(pagination: Window!): [Thing!]!
  skip(take: Int!, skip: Int): [Thing!]!
  other: Other
  needs(owner: ID!): [Thing!]!
  words: [String!]!
  one: Thing
}
"""


def test_shapes() -> None:
    query = build_schema(SHAPES).query_type
    assert query is not None
    found = {name: shape for name, field in query.fields.items() if (shape := list_shape(field)) is not None}
    kinds = {name: (shape.rows, shape.total, shape.paging and shape.paging.kind) for name, shape in found.items()}
    assert kinds == {
        "plain": ((), None, None),
        "maybe": ((), None, None),
        "relay": (("edges", "node"), ("pageInfo", "totalCount"), "cursor"),
        "nodes": (("nodes",), ("total",), "page"),
        "window": ((), None, "offset"),
        "skip": ((), None, "offset"),
    }


def test_unknown_scalars_and_what_needs_arguments() -> None:
    sdl = """
    scalar Money
    scalar BigInt
    union Any = A | B
    type B { x: Int }
    type A { id: ID!, big: BigInt, money: Money, words: [String!], any: Any, one(at: Int!): Int, b: B, grid: [[Int]] }
    type Query { a: [A!]! }
    """
    (info,) = infos(sdl).values()
    types = {item.name: item.type for item in info.fields}
    assert types == {"id": "string", "big": "integer", "money": "json", "words": "json", "grid": "json"}
    assert info.relations == (), "B is not exposed"


def chain(length: int) -> GraphQLSchema:
    """Types that each lead to the next: graphql-core itself recurses along them when it builds the schema."""
    types = "\n".join(f"type T{n} {{ id: ID!, next: T{n + 1}, prev: [T{max(n - 1, 0)}!] }}" for n in range(length))
    lists = " ".join(f"t{n}: [T{n}!]" for n in range(length + 1))
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(50_000)
    try:
        return build_schema(f"{types}\ntype T{length} {{ id: ID! }}\ntype Query {{ {lists} }}")
    finally:
        sys.setrecursionlimit(limit)


def test_a_thousand_related_types() -> None:
    bindings = describe(chain(1_000), Options(schema="a.b", managers="*"))
    index = SchemaIndex.build(binding.info for binding in bindings.values())
    assert len(index.managers) == 1_001
    assert executable(chain(2)).schema.query_type is not None
