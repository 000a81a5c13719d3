from __future__ import annotations

import sys
import threading
from dataclasses import replace

import graphql
import pytest

from gm_chat.managers import registry
from gm_chat.managers.api import (
    FieldInfo,
    InputInfo,
    ManagerInfo,
    ManagerVisibility,
    MutationInfo,
    RelationInfo,
    Visibility,
)
from gm_chat.managers.index import SchemaIndex
from gm_chat.managers.introspect import LOOKUPS
from gm_chat.managers.schema import SchemaBuildError, build_schema, print_sdl
from gm_chat.testing.fixtures.large import large_managers


def shop() -> list[ManagerInfo]:
    return [binding.info for binding in registry.bindings().values()]


def test_each_manager_is_a_type_with_its_description() -> None:
    part = build_schema(shop()).type_map["Part"]
    assert isinstance(part, graphql.GraphQLObjectType)
    assert part.description == "Designed or purchased components."
    types = {name: str(field.type) for name, field in part.fields.items()}
    assert types["id"] == "BigInt!"
    assert types["price"] == "Decimal"
    assert types["material"] == "Material!"
    assert types["supplier"] == "Supplier"
    assert types["tags"] == "[Tag!]!"
    assert part.fields["status"].description == (
        "One of: draft (In design), released (Released), obsolete (No longer used)."
    )
    assert list(part.fields["tags"].args) == ["limit"]


def test_each_manager_has_a_page_query() -> None:
    schema = build_schema(shop())
    assert schema.query_type is not None
    query = schema.query_type.fields["partList"]
    assert {name: str(argument.type) for name, argument in query.args.items()} == {
        "filters": "PartFilter",
        "order_by": "[String!]",
        "limit": "Int",
        "offset": "Int",
    }
    page = graphql.get_named_type(query.type)
    assert isinstance(page, graphql.GraphQLObjectType)
    assert {name: str(field.type) for name, field in page.fields.items()} == {
        "data": "[Part!]!",
        "total_count": "Int!",
        "has_more": "Boolean!",
    }


def test_filters_nest_over_relations_and_know_the_lookups() -> None:
    schema = build_schema(shop())
    document = """{ partList(filters: {
        and: [{name: {icontains: "bolt"}}, {not: {price: {gte: "1.5"}}}]
        or: [{material: {name: {in: ["Steel"]}}}, {order_lines: {order: {ordered_at: {year: 2026}}}}]
    }, order_by: ["-price"], limit: 5) { total_count data { name material { name } } } }"""
    assert graphql.validate(schema, graphql.parse(document)) == []
    wrong = '{ partList(filters: {price: {icontains: "1"}, nam: {exact: "x"}}) { total_count } }'
    messages = [error.message for error in graphql.validate(schema, graphql.parse(wrong))]
    assert any("icontains" in message for message in messages)
    assert any("nam" in message for message in messages)
    string = schema.type_map["StringLookups"]
    assert isinstance(string, graphql.GraphQLInputObjectType)
    assert tuple(string.fields) == LOOKUPS["string"]
    gross = schema.type_map["PartFilter"]
    assert isinstance(gross, graphql.GraphQLInputObjectType)
    assert "gross" not in gross.fields  # computed: it cannot be filtered


def test_mutations_have_flat_typed_arguments() -> None:
    schema = build_schema(shop())
    assert schema.mutation_type is not None
    mutations = schema.mutation_type.fields
    assert {"createPart", "updatePart", "deletePart", "createOrder", "updateOrder"} <= set(mutations)
    assert "deleteOrder" not in mutations
    create = mutations["createPart"]
    types = {name: str(argument.type) for name, argument in create.args.items()}
    assert types["number"] == "String!"
    assert types["price"] == "Decimal"
    assert types["material"] == "BigInt!"
    assert types["tags"] == "[BigInt!]"
    assert create.args["material"].description == "The id of MaterialManager."
    assert create.args["tags"].description == "The ids of TagManager."
    assert str(create.type) == "Part!"
    assert str(mutations["deletePart"].type) == "BigInt"
    assert str(mutations["deleteDocument"].type) == "UUID"
    assert {name: str(argument.type) for name, argument in mutations["deletePart"].args.items()} == {"id": "BigInt!"}


def test_the_sdl_is_a_valid_schema_and_stable() -> None:
    sdl = print_sdl(shop())
    assert sdl.endswith("}\n")
    assert sdl == print_sdl(shop())
    again = graphql.build_schema(sdl)
    assert set(again.type_map) == set(build_schema(shop()).type_map)


def test_without_a_manager_there_is_no_schema() -> None:
    hidden = replace(large_managers()[0], exposed=False)
    for infos in ([], [hidden]):
        with pytest.raises(SchemaBuildError, match=r"no manager is exposed: declare one in an app's chat_managers\.py"):
            build_schema(infos)


def test_without_mutations_there_is_no_mutation_type() -> None:
    assert build_schema([replace(large_managers()[0], mutations=(), relations=())]).mutation_type is None


def everything(index: SchemaIndex) -> Visibility:
    """The rights of someone who may see all of it."""
    return Visibility(
        "everything",
        {
            name: ManagerVisibility(
                frozenset(item.name for item in info.fields),
                frozenset(item.name for item in info.relations),
                frozenset(item.name for item in info.mutations),
            )
            for name, info in index.managers.items()
        },
    )


def manager(name: str, *relations: RelationInfo, **more: object) -> ManagerInfo:
    fields = (FieldInfo(name="id", type="integer", lookups=("exact",)),)
    info = ManagerInfo(name=name, description="", fields=fields, relations=relations)
    return replace(info, **more)  # type: ignore[arg-type] # passed through to the dataclass


def test_awkward_names_get_types_of_their_own() -> None:
    field = FieldInfo(name="größe", type="decimal")
    mutation = MutationInfo(
        name="weighPart", manager="PartManager", kind="custom", inputs=(InputInfo(name="größe", type="decimal"),)
    )
    infos = [
        manager("QueryManager"),
        manager("DateManager"),
        manager("PartManager", fields=(field,), mutations=(mutation,)),
        manager("Part"),
        manager("PartPageManager"),
        manager("3DModelManager"),
    ]
    schema = build_schema(infos)
    types = set(schema.type_map)
    assert {"QueryManager", "DateManager", "Part", "PartManager", "PartPageManager", "_3DModel"} <= types
    part = schema.type_map["PartManager"]
    assert isinstance(part, graphql.GraphQLObjectType)
    assert list(part.fields) == ["gruf6udfe"]
    assert schema.mutation_type is not None
    assert str(schema.mutation_type.fields["weighPart"].type) == "JSON"


def test_relations_to_managers_outside_are_left_out() -> None:
    part = build_schema([manager("PartManager", RelationInfo(name="x", target="NoManager", many=False))]).type_map[
        "Part"
    ]
    assert isinstance(part, graphql.GraphQLObjectType)
    assert list(part.fields) == ["id"]


def test_what_graphql_refuses_is_told() -> None:
    with pytest.raises(SchemaBuildError, match=r"the managers do not make a GraphQL schema: .*__id"):
        build_schema([manager("PartManager", fields=(FieldInfo(name="__id", type="integer"),))])
    with pytest.raises(SchemaBuildError, match="the managers do not make a GraphQL schema"):
        build_schema([manager("Manager", fields=())])


@pytest.mark.parametrize("many", [True, False])
def test_a_chain_of_1500_managers_needs_no_deeper_stack_than_one_of_two(many: bool) -> None:
    """Index, paths and schema, in a thread with a stack of 512 kB; Python's limit of 1,000 frames is left as it is.

    CPython 3.13 takes 200 kB of it for a single manager: libraries' thread-local data is part of it.
    """
    chain = [
        manager(
            f"M{number}Manager", RelationInfo(name="next", target=f"M{number + 1}Manager", many=many, nullable=False)
        )
        for number in range(1_500)
    ]
    outcome: list[object] = []

    def build() -> None:
        try:
            index = SchemaIndex.build(chain)
            view = index.view(everything(index))
            outcome.append(len(view.find_paths("M0Manager", "M1499Manager")[0]))
            outcome.append(len(build_schema(index.managers.values()).type_map) > 4_500)
        except RecursionError as error:
            outcome.append(error)

    limit, size = sys.getrecursionlimit(), threading.stack_size(512 * 1024)
    try:
        thread = threading.Thread(target=build)
        thread.start()
    finally:
        threading.stack_size(size)
    thread.join()
    assert outcome == [1_499, True]
    assert sys.getrecursionlimit() == limit < 1_500
    assert print_sdl(chain).count("type M") >= 3_000
