"""Mutations of a project's own: what their declarations become, and which are refused with which words."""

from __future__ import annotations

import uuid
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from typing import TYPE_CHECKING, Annotated, Any, Literal, Optional

import pytest
from django.db import models
from testproject.shop import models as shop

from gm_chat.managers import DeclarationError, ModelManager, expose, mutation
from gm_chat.managers.declare import CustomMutation
from gm_chat.managers.describe import describe
from gm_chat.managers.schema import print_sdl

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gm_chat.managers.api import InputInfo, MutationInfo
    from gm_chat.plugin import Actor


class Urgency(IntEnum):
    LOW = 1
    HIGH = 2


class Grade(models.TextChoices):
    A = "a", "First"
    B = "b", "Second"


class Odd(Enum):
    ONE = 1
    TWO = "two"


class PlainPartManager(ModelManager):
    """Parts."""

    chat_exposed = True
    model = shop.Part
    fields = ("id", "number", "name")


def part_manager(function: Callable[..., Any], **options: Any) -> type[ModelManager]:
    """A manager of parts with one mutation."""
    decorated = mutation(**options)(function)
    return type(
        "PartManager",
        (ModelManager,),
        {"chat_exposed": True, "model": shop.Part, "fields": ["id", "number"], "do": decorated},
    )


def described(function: Callable[..., Any], *others: type[ModelManager], **options: Any) -> MutationInfo:
    bindings = describe([part_manager(function, **options), *others]).bindings
    return bindings["PartManager"].info.mutations[-1]


def inputs(function: Callable[..., Any], *others: type[ModelManager]) -> list[InputInfo]:
    return list(described(function, *others).inputs)


def test_a_function_of_a_row_becomes_a_mutation() -> None:
    def re_order_part(part: Any, actor: Actor, quantity: int, *, note: str = "soon") -> None:
        """Order more
        of a part."""

    info = described(re_order_part)
    assert (info.name, info.manager, info.kind) == ("reOrderPart", "PartManager", "custom")
    assert info.description == "Order more\nof a part."
    key, quantity, note = info.inputs
    assert (key.name, key.type, key.required) == ("id", "integer", True)
    assert (quantity.name, quantity.type, quantity.required, quantity.nullable) == ("quantity", "integer", True, False)
    assert (note.name, note.required, note.description) == ("note", False, '(default: "soon")')


def test_a_function_of_no_row_has_no_id() -> None:
    def close(_actor: Any, month: date) -> None: ...

    assert [item.name for item in inputs(close)] == ["month"]


@pytest.mark.parametrize(
    ("hint", "expected"),
    [
        (str, "string"),
        (bool, "boolean"),
        (int, "integer"),
        (float, "number"),
        (Decimal, "decimal"),
        (date, "date"),
        (datetime, "datetime"),
        (time, "time"),
        (timedelta, "duration"),
        (uuid.UUID, "uuid"),
        (Urgency, "integer"),
        (Grade, "string"),
        (Literal["x", "y"], "string"),
        (Literal[1, 2], "integer"),
    ],
)
def test_each_type_has_an_input(hint: Any, expected: str) -> None:
    def do(actor: Any, one: Any, maybe: Any, old: Any, several: Any, all_of_it: Any) -> None: ...

    do.__annotations__ |= {
        "one": hint,
        "maybe": hint | None if isinstance(hint, type) else Optional[hint],  # noqa: UP045 - Literal | None is one too
        "old": Optional[hint],  # noqa: UP045 - as older code writes it
        "several": list[hint],
        "all_of_it": Annotated[Optional[list[hint]], "which ones"],  # noqa: UP045 - as above
    }
    one, maybe, old, several, all_of_it = inputs(do)
    assert {item.type for item in (one, maybe, old, several, all_of_it)} == {expected}
    assert [item.nullable for item in (one, maybe, old, several, all_of_it)] == [False, True, True, False, True]
    assert [item.many for item in (one, maybe, old, several, all_of_it)] == [False, False, False, True, True]
    assert all_of_it.description == "which ones"


def test_choices_have_labels() -> None:
    def do(actor: Any, urgency: Urgency, grade: Grade = Grade.A, kind: Literal["x", "y"] = "x") -> None: ...

    urgency, grade, kind = inputs(do)
    assert urgency.choices == ((1, "LOW"), (2, "HIGH"))
    assert grade.choices == (("a", "First"), ("b", "Second"))
    assert grade.description == '(default: "a")'
    assert kind.choices == (("x", "x"), ("y", "y"))


def test_rows_are_named_by_their_managers() -> None:
    class AlloyManager(ModelManager):
        chat_exposed = True
        model = shop.Material

    def do(actor: Any, material: shop.Material, alloys: list[AlloyManager], project: shop.Project) -> None: ...

    do.__annotations__["alloys"] = list[AlloyManager]
    others = (expose(shop.Material), AlloyManager, expose(shop.Project))
    material, alloys, project = inputs(do, *others)
    assert (material.relation, material.type, material.many) == ("MaterialManager", "integer", False)
    assert (alloys.relation, alloys.many) == ("AlloyManager", True)
    assert (project.relation, project.type) == ("ProjectManager", "string")


def test_it_stands_in_the_printed_schema() -> None:
    def swap(part: Any, actor: Any, material: shop.Material, grades: list[Grade], count: int | None = None) -> None:
        """Take another material."""

    sdl = print_sdl(item.info for item in describe([part_manager(swap), expose(shop.Material)]).bindings.values())
    assert '"""Take another material."""\n  swap(' in sdl
    for line in ("id: BigInt!", "material: BigInt!", "grades: [String!]!", "count: BigInt", "): JSON"):
        assert line in sdl


def test_a_static_method_and_another_name() -> None:
    class PartManager(PlainPartManager):
        chat_exposed = True

        @mutation(name="throwAway", permission="shop.delete_part")
        @staticmethod
        def scrap(part: Any, actor: Any) -> None:
            """Scrap it."""

    assert isinstance(PartManager.scrap, CustomMutation)
    binding = describe([PartManager]).bindings["PartManager"]
    assert binding.info.mutations[-1].name == "throwAway"
    assert (binding.custom["throwAway"].on_row, binding.custom["throwAway"].permission) == (True, "shop.delete_part")


def test_it_is_inherited_and_replaced() -> None:
    class Base(ModelManager):
        @mutation
        def note(actor: Any, text: str) -> None: ...

    class PartManager(Base):
        chat_exposed = True
        model = shop.Part
        fields = ("id", "number")

    class TagManager(Base):
        chat_exposed = True
        model = shop.Tag

        @mutation(name="noteTag")
        def note(actor: Any, text: str) -> None: ...

    bindings = describe([PartManager, TagManager]).bindings
    assert list(bindings["PartManager"].custom) == ["note"]
    assert list(bindings["TagManager"].custom) == ["noteTag"]


# --- mistakes -----------------------------------------------------------------------------------------------------


async def wait(part: Any, actor: Any) -> None: ...


def give(part: Any, actor: Any) -> Iterator[int]:
    yield 1


def nobody(part: Any, quantity: int) -> None: ...


def open_ended(part: Any, actor: Any, **more: Any) -> None: ...


def bare(part: Any, actor: Any, quantity) -> None: ...  # type: ignore[no-untyped-def] # the mistake under test


def own_id(actor: Any, id: int) -> None: ...


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (wait, "runs in a database transaction, which is synchronous: use def"),
        (give, "may not yield"),
        (nobody, r"takes \(row, actor, ...\), or \(actor, ...\)"),
        (open_ended, "'more' is variadic keyword; an input is called by its name"),
        (bare, "'quantity' has no annotation; write for instance quantity: str"),
        (own_id, "'id' is the input that names the row"),
    ],
)
def test_a_function_that_cannot_be_one_is_refused_where_it_stands(function: Any, says: str) -> None:
    with pytest.raises(DeclarationError, match=rf"test_custom\.{function.__name__}: .*{says}"):
        mutation(function)


async def may(actor: Any) -> bool:
    return True


@pytest.mark.parametrize("permission", [5, may])
def test_a_permission_is_a_name_or_a_function(permission: Any) -> None:
    with pytest.raises(DeclarationError, match="permission="):
        mutation(permission=permission)(own_id)


@pytest.mark.parametrize(
    ("hint", "says"),
    [
        (Any, r"is annotated as (typing\.)?Any; known: str, bool, int"),
        (dict, "is annotated as dict; known:"),
        ([int], r"is annotated as \[<class 'int'>\]; known:"),
        (int | str, r"is one of several types, int \| str"),
        (int | str | None, "is one of several types"),
        (list[list[int]], "a list holds neither lists nor None"),
        (list[int | None], "a list holds neither lists nor None"),
        (Odd, "has choices of several types"),
        (Literal["a", 1], "has choices of several types"),
        (shop.Payment, "is a Payment, which has no exposed manager"),
        (shop.Placement, "no primary key of one scalar column"),
        (shop.Document, "could be a row of PaperManager or SheetManager; annotate it with the manager"),
        (PlainPartManager, "is a row of PlainPartManager, which is not exposed"),
        (ModelManager, "is a row of ModelManager, which is not exposed"),
    ],
)
def test_an_annotation_that_is_no_input_is_refused(hint: Any, says: str) -> None:
    def do(actor: Any, what: Any) -> None: ...

    do.__annotations__["what"] = hint
    others = [expose(shop.Document, name="PaperManager"), expose(shop.Document, name="SheetManager")]
    with pytest.raises(DeclarationError, match=rf"PartManager\.do: the input 'what' .*{says}"):
        inputs(do, *others, expose(shop.Placement))


def test_an_annotation_that_cannot_be_read_is_refused() -> None:
    def do(actor: Any, what: Any) -> None: ...

    do.__annotations__["what"] = "Nonsense"
    with pytest.raises(DeclarationError, match=r"PartManager\.do: .*NameError: name 'Nonsense'.*TYPE_CHECKING"):
        inputs(do)


def test_a_row_needs_a_key_and_a_name_is_used_once() -> None:
    def do(row: Any, actor: Any) -> None: ...

    class PlacementManager(ModelManager):
        chat_exposed = True
        model = shop.Placement
        move = mutation(do)

    with pytest.raises(DeclarationError, match=r"PlacementManager\.move: it takes a row, and the model has no primary"):
        describe([PlacementManager])
    with pytest.raises(DeclarationError, match=r"has a mutation 'deletePart' already"):
        described(do, name="deletePart")


def test_what_is_no_switch_is_refused() -> None:
    class PartManager(PlainPartManager):
        chat_exposed = True
        preview = "no"  # type: ignore[assignment] # the mistake under test

    with pytest.raises(DeclarationError, match=r"PartManager\.preview: 'no' is neither True nor False"):
        describe([PartManager])
