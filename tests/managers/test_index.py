from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
from gm_chat.managers.index import VIEWS_KEPT, DuplicateNameError, MaskedView, SchemaIndex
from gm_chat.planned.catalog import ManagerCatalog, ManagerCatalogEntry


def manager(name: str, *targets: str, fields: str = "id name", **more: object) -> ManagerInfo:
    stem = name.removesuffix("Manager")
    info = ManagerInfo(
        name=name,
        description=f"All about {stem.lower()}.",
        fields=tuple(FieldInfo(name=item, type="string") for item in fields.split()),
        relations=tuple(RelationInfo(name=item.lower(), target=f"{item}Manager", many=False) for item in targets),
        mutations=(
            MutationInfo(
                name=f"create{stem}",
                manager=name,
                kind="create",
                inputs=(
                    InputInfo(name="name", type="string", required=True),
                    *(InputInfo(name=item.lower(), type="integer", relation=f"{item}Manager") for item in targets),
                ),
            ),
            MutationInfo(
                name=f"delete{stem}",
                manager=name,
                kind="delete",
                inputs=(InputInfo(name="id", type="integer", required=True),),
            ),
        ),
    )
    return replace(info, **more)  # type: ignore[arg-type] # passed through to the dataclass


PART, MATERIAL, SECRET = (
    manager("PartManager", "Material", "Secret"),
    manager("MaterialManager"),
    manager("SecretManager"),
)


def full(index: SchemaIndex, *names: str) -> Visibility:
    rights = {
        name: ManagerVisibility(
            frozenset(item.name for item in info.fields),
            frozenset(item.name for item in info.relations),
            frozenset(item.name for item in info.mutations),
        )
        for name, info in index.managers.items()
        if not names or name in names
    }
    return Visibility(",".join(names) or "everything", rights)


def names(view: MaskedView) -> list[str]:
    return [info.name for info in view]


def test_the_index_is_sorted_and_cannot_be_changed() -> None:
    index = SchemaIndex.build([PART, MATERIAL, SECRET])
    assert list(index.managers) == ["MaterialManager", "PartManager", "SecretManager"]
    assert index.mutations["createPart"].manager == "PartManager"
    with pytest.raises(TypeError):
        index.managers["x"] = PART  # type: ignore[index] # it is the point of the test
    with pytest.raises(AttributeError):
        index.managers = {}  # type: ignore[misc] # it is the point of the test


def test_relations_to_unknown_or_hidden_managers_are_dropped_with_a_note() -> None:
    index = SchemaIndex.build([PART, MATERIAL, replace(SECRET, exposed=False)])
    part = index.managers["PartManager"]
    assert [item.name for item in part.relations] == ["material"]
    assert [item.name for item in part.mutations[0].inputs] == ["name", "material"]
    assert index.notes == ("PartManager.secret is left out: there is no exposed manager 'SecretManager'",)
    assert "createSecret" not in index.mutations


def test_duplicate_names_are_refused() -> None:
    with pytest.raises(DuplicateNameError, match="two managers are named 'PartManager'"):
        SchemaIndex.build([PART, PART])
    with pytest.raises(DuplicateNameError, match="'Part' and 'PartManager' both offer the mutation 'createPart'"):
        SchemaIndex.build([PART, manager("Part")])


def test_a_full_view_shows_the_very_same_objects() -> None:
    index = SchemaIndex.build([PART, MATERIAL, SECRET])
    view = index.view(full(index))
    assert all(view.get(name) is info for name, info in index.managers.items())
    assert view.mutation("createPart") == index.mutations["createPart"]
    assert view.mutation("createNothing") is None
    assert names(view) == sorted(index.managers)


def test_views_are_shared_by_equal_rights_and_bounded() -> None:
    index = SchemaIndex.build([PART, MATERIAL, SECRET])
    view = index.view(full(index))
    assert index.view(full(index)) is view
    assert index.view(full(index, "PartManager")) is not view
    for number in range(VIEWS_KEPT - 2):
        index.view(Visibility(str(number), {}))
    assert index.view(full(index)) is view  # used just now, so that it stays
    index.view(Visibility("one more", {}))
    index.view(Visibility("and another", {}))
    assert index.view(full(index)) is view
    for number in range(VIEWS_KEPT):
        index.view(Visibility(f"new {number}", {}))
    assert index.view(full(index)) is not view


def test_a_hidden_manager_does_not_exist() -> None:
    index = SchemaIndex.build([PART, MATERIAL, SECRET])
    view = index.view(full(index, "PartManager", "MaterialManager"))
    assert view.get("SecretManager") is None is view.get("NoSuchManager")
    assert view.mutation("createSecret") is None
    part = view.get("PartManager")
    assert part is not None
    assert [item.target for item in part.relations] == ["MaterialManager"]
    assert [item.name for item in part.mutations[0].inputs] == ["name", "material"]
    assert view.search("secret") == []
    assert view.find_paths("PartManager", "SecretManager") == []
    assert view.find_paths("PartManager", "MaterialManager") == [("material",)]
    assert not view.rows_may_be_hidden("SecretManager")


def test_members_and_mutations_are_masked() -> None:
    index = SchemaIndex.build([PART, MATERIAL, SECRET])
    rights = ManagerVisibility(
        frozenset({"id"}), frozenset({"material"}), frozenset({"createPart", "deletePart"}), rows_may_be_hidden=True
    )
    others = dict(full(index).managers)
    view = index.view(Visibility("masked", {**others, "PartManager": rights}))
    part = view.get("PartManager")
    assert part is not None
    assert [item.name for item in part.fields] == ["id"]
    assert [item.name for item in part.relations] == ["material"]
    assert [item.name for item in part.mutations] == ["deletePart"]  # creating requires the hidden name
    assert view.rows_may_be_hidden("PartManager")
    assert view.find_paths("PartManager", "SecretManager") == []


def test_the_id_of_an_update_stays_though_the_field_is_hidden() -> None:
    index = SchemaIndex.build([MATERIAL])
    view = index.view(
        Visibility(
            "no id",
            {"MaterialManager": ManagerVisibility(frozenset({"name"}), frozenset(), frozenset({"deleteMaterial"}))},
        )
    )
    assert view.mutation("deleteMaterial") is not None


def test_hidden_members_cannot_be_searched() -> None:
    salary = manager("EmployeeManager", fields="id name salary")
    index = SchemaIndex.build([salary])
    hidden = {"EmployeeManager": ManagerVisibility(frozenset({"id", "name"}), frozenset(), frozenset())}
    assert [info.name for info in index.view(full(index)).search("salary")] == ["EmployeeManager"]
    assert index.view(Visibility("hidden", hidden)).search("salary") == []
    assert index.view(Visibility("hidden", hidden)).search("salry") == []


def test_an_empty_index() -> None:
    view = SchemaIndex.build([]).view(Visibility("", {}))
    assert names(view) == []
    assert view.search("part") == []
    assert view.find_paths("a", "a") == []


@pytest.mark.django_db
def test_the_declared_managers_make_an_index() -> None:
    index = SchemaIndex.build(binding.info for binding in registry.bindings().values())
    assert index.notes == ()
    view = index.view(full(index))
    assert view.find_paths("TagManager", "OrderManager") == [("parts", "order_lines", "order")]
    assert view.search("vendors")[0].name == "SupplierManager"


# --- a catalog's words ------------------------------------------------------------------------------------------


def entry(*aliases: str, use_when: str = "Always.", distinguish_from: tuple[str, ...] = ()) -> ManagerCatalogEntry:
    return ManagerCatalogEntry("all", aliases, use_when, distinguish_from)


def test_a_catalog_adds_to_what_a_source_says() -> None:
    declared = replace(PART, aliases=("Spare-Part", "item"), domain="old", use_when="Before.")
    catalog = ManagerCatalog.of(
        {
            "PartManager": entry("component", "spare part", distinguish_from=("MaterialManager", "NoManager")),
            "NoManager": entry("ghost"),
        }
    )
    index = SchemaIndex.build([declared, MATERIAL, SECRET], catalog)
    part = index.managers["PartManager"]
    assert part.aliases == ("Spare-Part", "item", "component")
    assert (part.domain, part.use_when, part.distinguish_from) == ("all", "Always.", ("MaterialManager",))
    assert index.managers["MaterialManager"] is MATERIAL
    assert "NoManager" not in index.managers
    view = index.view(full(index))
    assert view.get("PartManager") is part
    assert view.search("components") == [part]
    assert view.catalog.entries == {
        "PartManager": ManagerCatalogEntry("all", ("component", "item", "spare part"), "Always.", ("MaterialManager",))
    }


def test_an_actor_s_catalog_names_no_hidden_manager() -> None:
    catalog = ManagerCatalog.of(
        {
            "PartManager": entry("component", distinguish_from=("MaterialManager", "SecretManager")),
            "SecretManager": entry("agent", use_when="Espionage.", distinguish_from=("PartManager",)),
        }
    )
    index = SchemaIndex.build([PART, MATERIAL, SECRET], catalog)
    view = index.view(full(index, "PartManager", "MaterialManager"))
    part = view.get("PartManager")
    assert part is not None
    assert part.distinguish_from == ("MaterialManager",)
    assert list(view.catalog.entries) == ["PartManager"]
    assert view.catalog.entries["PartManager"].distinguish_from == ("MaterialManager",)
    for query in ("agent", "agnet", "espionage", "secret"):
        assert view.search(query) == []
    # The same as if the hidden manager did not exist.
    without = SchemaIndex.build([PART, MATERIAL], ManagerCatalog.of({"PartManager": catalog.entries["PartManager"]}))
    assert without.view(full(without)).catalog == view.catalog


def test_hubs_are_those_of_what_the_actor_sees() -> None:
    spokes = [manager(f"Record{number}Manager", "User") for number in range(25)]
    index = SchemaIndex.build([*spokes, manager("UserManager")])
    assert index.view(full(index)).hubs == {"UserManager"}
    assert index.view(full(index, "UserManager", *(info.name for info in spokes[:5]))).hubs == frozenset()
    assert index.view(full(index, *(info.name for info in spokes))).hubs == frozenset()


WORDS = ManagerCatalog.of(
    {
        "SecretManager": entry("agent", distinguish_from=("PartManager", "CustomerManager")),
        "CustomerManager": entry(
            "client", "budget holder", use_when="Secret clients.", distinguish_from=("PartManager",)
        ),
        "PartManager": entry("component", distinguish_from=("MaterialManager", "SecretManager")),
    }
)
ALL = [
    PART,
    MATERIAL,
    SECRET,
    manager("OrderManager", "Part", "Customer"),
    manager("CustomerManager", "Secret", fields="id name budget"),
]
INDEX = SchemaIndex.build(ALL, WORDS)


@st.composite
def visibilities(draw: st.DrawFn) -> Visibility:
    managers = {}
    for name, info in INDEX.managers.items():
        if draw(st.booleans()):
            managers[name] = ManagerVisibility(
                draw(st.frozensets(st.sampled_from([item.name for item in info.fields]))),
                frozenset(item.name for item in info.relations if draw(st.booleans())),
                draw(st.frozensets(st.sampled_from([item.name for item in info.mutations]))),
            )
    return Visibility(repr(managers), managers)


@given(visibilities(), st.text(max_size=30) | st.sampled_from(["secret", "budget", "material name", "customr"]))
def test_views_never_show_hidden_things(visibility: Visibility, query: str) -> None:
    view = INDEX.view(visibility)
    assert names(view) == sorted(visibility.managers)
    for info in view:
        rights = visibility.managers[info.name]
        assert {item.name for item in info.fields} == rights.fields
        assert {item.name for item in info.relations} <= rights.relations
        assert {item.target for item in info.relations} <= set(visibility.managers)
        assert {item.name for item in info.mutations} <= rights.mutations
        for mutation in info.mutations:
            assert view.mutation(mutation.name) == mutation
            seen = rights.fields | {item.name for item in info.relations} | {"id"}
            assert {item.name for item in mutation.inputs} <= seen
            assert {item.relation for item in mutation.inputs} - {None} <= set(visibility.managers)
        assert set(info.distinguish_from) <= set(visibility.managers)
    assert set(view.catalog.entries) <= set(visibility.managers)
    assert {info.name for info in view.search(query)} <= set(visibility.managers)
    for path in view.find_paths("OrderManager", "SecretManager", limit=5):
        here = "OrderManager"
        for step in path:
            info = view.get(here)  # type: ignore[assignment] # None would fail on the next line
            here = next(item.target for item in info.relations if item.name == step)
        assert here == "SecretManager"


@given(visibilities())
def test_what_is_hidden_does_not_change_what_is_found(visibility: Visibility) -> None:
    """The same search over an index that holds nothing but what is visible gives the same answer."""
    view = INDEX.view(visibility)
    alone = SchemaIndex.build(list(view))
    assert alone.view(full(alone)).catalog == view.catalog
    for query in ("part", "secret customer", "budget", "matrial", "all about name", "agnet", "client", "componnt"):
        assert [info.name for info in view.search(query)] == [
            info.name for info in alone.view(full(alone)).search(query)
        ]
