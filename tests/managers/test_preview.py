"""What a mutation would do, as its actor may see it, without a trace; and whether that still holds when it runs."""

from __future__ import annotations

import json
import time
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import connection, models, transaction
from django.test.utils import CaptureQueriesContext
from testproject.desk import Desk, actor_of
from testproject.shop import models as shop
from testproject.shop_rows import fill_shop

from gm_chat.encoding import to_json
from gm_chat.managers import ModelManager, expose, mutation, registry
from gm_chat.managers.calls import build_call
from gm_chat.managers.mutations import execute_mutation, preview_mutation
from gm_chat.managers.sight import MAX_SHOWN
from gm_chat.plugin import ToolError

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.django_db


class Reason(models.TextChoices):
    OLD = "old", "Too old"
    WORN = "worn", "Worn out"


class PartManager(ModelManager):
    """Parts, which can be retired, scrapped, renamed by the dozen and counted."""

    chat_exposed = True
    model = shop.Part

    @mutation
    def retire_part(
        part: Any, actor: Any, reason: Reason, replacement: shop.Part | None = None, tags: list[shop.Tag] | None = None
    ) -> dict[str, Any]:
        """Take a part out of use."""
        assert isinstance(reason, Reason)
        shop.Part.objects.filter(pk=part.pk).update(status="obsolete")
        names = [tag.name for tag in tags or []]
        return {
            "why": reason.label,
            "by": replacement and replacement.number,
            "tags": names,
            "who": actor.user.username,
        }

    @mutation
    def scrap(part: Any, actor: Any) -> None:
        """Forget it."""
        part.delete()

    @mutation
    def count(actor: Any, reasons: list[Reason], numbers: list[int], since: date | None = None) -> int:
        """Count something."""
        assert all(isinstance(reason, Reason) for reason in reasons)
        return len(reasons) + sum(numbers)

    @mutation
    def fail(actor: Any, how: str) -> Any:
        """Fail in a way."""
        shop.Tag.objects.create(name="trace")
        match how:
            case "invalid":
                raise ValidationError({"how": ["not so"], "__all__": ["and not at all"]})
            case "denied":
                raise PermissionDenied("tag 7 is secret")
            case "told":
                raise ToolError("closed", "the shop is closed")
            case "strange":
                return object()
            case "taken":
                shop.Tag.objects.create(name="trace")
        raise LookupError(how)


OTHERS = (shop.Material, shop.Supplier, shop.Tag, shop.Specification, shop.Document, shop.Project, shop.BomLine)


@pytest.fixture
def users() -> dict[str, Any]:
    return fill_shop(parts=10)


@pytest.fixture
def desk(users: dict[str, Any]) -> Iterator[Desk]:
    with registry.using(PartManager, *map(expose, OTHERS)) as bindings:
        yield Desk(bindings, actor_of(users["staff"]))


@pytest.fixture
def part() -> Any:
    steel, brass = (shop.Material.objects.create(name=name, density=8) for name in ("Steel", "Brass"))
    part = shop.Part.objects.create(number="X-1", name="Bolt", price=Decimal("9.90"), status="draft", material=steel)
    part.brass = brass
    return part


def hiding(desk: Desk, manager: str, rule: Any = None, fields: Any = None) -> Desk:
    binding = replace(desk.bindings[manager], visible_to=rule, visible_fields=fields)
    return Desk({**desk.bindings, manager: binding}, desk.actor)


def preview(desk: Desk, name: str, expected: Any = None, /, **values: Any) -> dict[str, Any]:
    told = preview_mutation(build_call(name, values, desk.view, expected), desk.bindings, desk.actor)
    return json.loads(to_json(told))  # as it is stored and comes back


def changes(told: dict[str, Any]) -> dict[str, Any]:
    return {item.pop("field"): item for item in told["changes"]}


def run(desk: Desk, name: str, expected: Any = None, /, shown: Any = None, **values: Any) -> dict[str, Any]:
    call = replace(build_call(name, values, desk.view, expected), shown=shown)
    return execute_mutation(call, desk.bindings, desk.actor)


@contextmanager
def refused(code: str, says: str = ".") -> Iterator[dict[str, Any]]:
    """What the error tells beside its message."""
    details: dict[str, Any] = {}
    with pytest.raises(ToolError, match=says) as caught:
        yield details
    assert caught.value.code == code
    details |= {"message": caught.value.message, **caught.value.details}


# --- what it tells ------------------------------------------------------------------------------------------------


def test_an_update_shows_old_and_new(desk: Desk, part: Any) -> None:
    told = preview(desk, "updatePart", id=part.pk, price="12", status="Released", material=part.brass.pk, name="Bolt")
    assert (told["action"], told["manager"], told["tried"]) == ("update", "PartManager", True)
    assert told["row"] == {"id": part.pk, "label": "Bolt"}
    steel = part.material.pk
    assert changes(told) == {
        "name": {"old": "Bolt", "new": "Bolt"},
        "status": {"old": "draft", "old_label": "In design", "new": "released", "new_label": "Released"},
        "price": {"old": "9.90", "new": "12.00"},
        "material": {"old": steel, "old_label": "Steel", "new": part.brass.pk, "new_label": "Brass"},
    }
    part.refresh_from_db()
    assert (part.price, part.material_id) == (Decimal("9.90"), steel)


def test_what_saving_adds_is_shown_too(desk: Desk, part: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    save = shop.Part.save

    def save_and_describe(self: Any, **options: Any) -> None:
        self.description = f"{self.name}, {self.number}"
        save(self, **options)

    monkeypatch.setattr(shop.Part, "save", save_and_describe)
    told = preview(desk, "updatePart", id=part.pk, name="Screw")
    assert changes(told) == {
        "name": {"old": "Bolt", "new": "Screw"},
        "description": {"old": "", "new": "Screw, X-1"},
    }


def test_a_row_without_a_name_is_called_by_what_it_refers_to(desk: Desk, part: Any) -> None:
    project = shop.Project.objects.create(code="p", name="Press")
    line = shop.BomLine.objects.create(project=project, part=part, position=1)
    assert preview(desk, "updateBomLine", id=line.pk, quantity=2)["row"] == {"id": line.pk, "label": "Press, Bolt"}
    blind = hiding(desk, "ProjectManager", lambda rows, actor: rows.none())
    assert preview(blind, "updateBomLine", id=line.pk, quantity=2)["row"] == {"id": line.pk, "label": "Bolt"}
    spec = shop.Specification.objects.create(part=part, text="tight")
    assert preview(desk, "deleteSpecification", id=spec.pk)["row"]["label"] == "Bolt"
    blind = hiding(desk, "PartManager", lambda rows, actor: rows.none())
    assert preview(blind, "deleteSpecification", id=spec.pk)["row"]["label"] == "tight"


def test_many_to_many_relations_are_lists_with_names(desk: Desk, part: Any) -> None:
    one, two, three = shop.Tag.objects.order_by("pk")[:3]
    part.tags.set([one, two])
    told = changes(preview(desk, "updatePart", id=part.pk, tags=[three.pk, two.pk]))
    assert told["tags"] == {
        "old": [one.pk, two.pk],
        "old_label": [one.name, two.name],
        "new": [two.pk, three.pk],
        "new_label": [two.name, three.name],
    }
    assert set(part.tags.all()) == {one, two}


def test_a_creation_shows_what_will_be_there(desk: Desk, part: Any) -> None:
    told = preview(desk, "createPart", number="N", name="Nut", material=part.brass.pk)
    assert "row" not in told
    assert changes(told) == {
        "number": {"new": "N"},
        "name": {"new": "Nut"},
        "status": {"new": "draft", "new_label": "In design"},
        "purchased": {"new": False},
        "material": {"new": part.brass.pk, "new_label": "Brass"},
    }
    assert not shop.Part.objects.filter(number="N").exists()
    assert changes(preview(desk, "createProject", code="own", name="x"))["code"] == {"new": "own"}


def test_a_deletion_shows_the_row_and_what_goes_along(desk: Desk, part: Any) -> None:
    shop.Specification.objects.create(part=part, text="s")
    for number in range(3):
        shop.Document.objects.create(title=f"d{number}", part=part, confidential=number == 0)
    shop.Placement.objects.create(shelf="A", part=part)
    told = preview(desk, "deletePart", id=part.pk)
    assert told["also_deleted"] == [
        {"manager": "DocumentManager", "rows": 3},
        {"manager": "SpecificationManager", "rows": 1},
    ]
    shown = changes(told)
    assert shown["name"] == {"old": "Bolt"}
    assert shown["weight"] == {"old": None}
    assert shown["material"] == {"old": part.material_id, "old_label": "Steel"}
    assert shop.Part.objects.filter(pk=part.pk).exists()
    blind = hiding(desk, "DocumentManager", lambda rows, actor: rows.filter(confidential=False))
    assert preview(blind, "deletePart", id=part.pk)["also_deleted"][0] == {"manager": "DocumentManager", "rows": 2}
    none = hiding(desk, "DocumentManager", lambda rows, actor: rows.none())
    assert [item["manager"] for item in preview(none, "deletePart", id=part.pk)["also_deleted"]] == [
        "SpecificationManager"
    ]


def test_more_rows_than_fit_into_a_statement_are_counted(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gm_chat.managers.preview._AT_ONCE", 2)
    project = shop.Project.objects.create(code="big", name="big")
    part = shop.Part.objects.earliest("pk")
    shop.BomLine.objects.bulk_create(shop.BomLine(project=project, part=part, position=n) for n in range(5))
    with registry.using(expose(shop.Project), expose(shop.BomLine)) as bindings:
        assert preview(Desk(bindings, desk.actor), "deleteProject", id="big")["also_deleted"] == [
            {"manager": "BomLineManager", "rows": 5}
        ]
        # with a receiver Django fetches the rows, else it deletes them unseen
        models.signals.pre_delete.connect(_nothing, sender=shop.BomLine)
        try:
            assert preview(Desk(bindings, desk.actor), "deleteProject", id="big")["also_deleted"] == [
                {"manager": "BomLineManager", "rows": 5}
            ]
        finally:
            models.signals.pre_delete.disconnect(_nothing, sender=shop.BomLine)


def _nothing(**_: Any) -> None: ...


def test_an_own_mutation_shows_its_arguments_and_what_becomes_of_its_row(desk: Desk, part: Any) -> None:
    other, tag = shop.Part.objects.earliest("pk"), shop.Tag.objects.earliest("pk")
    told = preview(desk, "retirePart", id=part.pk, reason="Too old", replacement=other.pk, tags=[tag.pk])
    assert (told["action"], told["row"]) == ("custom", {"id": part.pk, "label": "Bolt"})
    assert told["arguments"] == [
        {"name": "reason", "value": "old", "label": "Too old"},
        {"name": "replacement", "value": other.pk, "label": other.name},
        {"name": "tags", "value": [tag.pk], "label": [tag.name]},
    ]
    assert changes(told) == {
        "status": {"old": "draft", "old_label": "In design", "new": "obsolete", "new_label": "No longer used"}
    }
    told = preview(desk, "count", reasons=["worn", "old"], numbers=[1, 2])
    assert told["arguments"] == [
        {"name": "reasons", "value": ["worn", "old"], "label": ["Worn out", "Too old"]},
        {"name": "numbers", "value": [1, 2]},
    ]
    assert told["changes"] == []
    gone = changes(preview(desk, "scrap", id=part.pk))
    assert gone["name"] == {"old": "Bolt"}
    assert shop.Part.objects.filter(pk=part.pk).exists()


def test_long_values_are_cut_and_still_compared(desk: Desk, part: Any) -> None:
    shop.Part.objects.filter(pk=part.pk).update(description="x" * 2_000, attributes={"list": ["y" * 900]})
    shown = preview(desk, "deletePart", id=part.pk)
    told = changes(json.loads(json.dumps(shown)))
    assert told["description"]["old"]["start"] == "x" * MAX_SHOWN
    assert told["description"]["old"]["length"] == 2_000
    assert len(to_json(told["attributes"])) < 2 * MAX_SHOWN
    shop.Part.objects.filter(pk=part.pk).update(description="x" * 1_999 + "!")
    with refused("conflict", "description") as details:
        run(desk, "deletePart", shown=shown, id=part.pk)
    assert list(details["fields"]) == ["description"]
    assert len(details["message"]) < 400


# --- what it must not tell ----------------------------------------------------------------------------------------


def test_hidden_fields_relations_and_rows_do_not_stand_in_it(desk: Desk, part: Any) -> None:
    hidden = {"price", "material", "number"}
    blind = hiding(desk, "PartManager", fields=lambda names, actor: names - hidden)
    for name, values in (("updatePart", {"name": "n", "status": "obsolete"}), ("deletePart", {}), ("scrap", {})):
        assert not hidden & changes(preview(blind, name, id=part.pk, **values)).keys()
    blind = hiding(desk, "MaterialManager", lambda rows, actor: rows.exclude(name="Steel"))
    told = changes(preview(blind, "updatePart", id=part.pk, material=part.brass.pk))
    assert told["material"] == {"old": None, "new": part.brass.pk, "new_label": "Brass"}
    assert "Steel" not in to_json(preview(blind, "deletePart", id=part.pk))
    blind = hiding(desk, "MaterialManager", fields=lambda names, actor: names - {"name", "notes"})
    told = changes(preview(blind, "updatePart", id=part.pk, material=part.brass.pk))
    assert told["material"] == {"old": part.material_id, "new": part.brass.pk}
    steel, brass = shop.Tag.objects.order_by("pk")[:2]
    part.tags.set([steel, brass])
    blind = hiding(desk, "TagManager", lambda rows, actor: rows.exclude(pk=steel.pk))
    told = changes(preview(blind, "updatePart", id=part.pk, tags=[]))
    assert told["tags"] == {"old": [brass.pk], "old_label": [brass.name], "new": [], "new_label": []}


@pytest.mark.parametrize("member", ["material", "replacement", "tags"])
def test_hidden_references_are_absent_at_the_same_cost(desk: Desk, part: Any, member: str) -> None:
    manager, model = {
        "material": ("MaterialManager", shop.Material),
        "replacement": ("PartManager", shop.Part),
        "tags": ("TagManager", shop.Tag),
    }[member]
    hidden: Any = model.objects.exclude(pk=part.pk).latest("pk")
    blind = hiding(desk, manager, lambda rows, actor: rows.exclude(pk=hidden.pk))
    for name, values in (("updatePart", {}), ("retirePart", {"reason": "old"})):
        if member not in {item.name for item in blind.view.mutation(name).inputs}:
            continue
        answers = []
        for do in (preview, run):
            for key in (hidden.pk, 10**9):
                given = [key] if member == "tags" else key
                with CaptureQueriesContext(connection) as statements, refused("validation_failed") as details:
                    do(blind, name, id=part.pk, **values, **{member: given})
                answers.append((to_json(details).replace(str(key), "?"), len(statements)))
        assert answers[0] == answers[1]
        assert answers[2] == answers[3]


def test_a_hidden_and_an_absent_row_are_alike(desk: Desk, part: Any) -> None:
    blind = hiding(desk, "PartManager", lambda rows, actor: rows.exclude(pk=part.pk))
    for name, values in (("updatePart", {"name": "x"}), ("deletePart", {}), ("retirePart", {"reason": "old"})):
        answers = []
        for key in (part.pk, 10**9):
            with CaptureQueriesContext(connection) as statements, refused("not_found") as details:
                preview(blind, name, {"price": "1"}, id=key, **values)
            answers.append((to_json(details).replace(str(key), "?"), len(statements)))
        assert answers[0] == answers[1]


def test_what_a_row_refers_to_does_not_change_the_number_of_statements(desk: Desk, part: Any) -> None:
    blind = hiding(desk, "SupplierManager", lambda rows, actor: rows.exclude(name="Hidden"))
    counts = []
    for supplier in (None, shop.Supplier.objects.create(name="Hidden")):
        shop.Part.objects.filter(pk=part.pk).update(supplier=supplier)
        with CaptureQueriesContext(connection) as statements:
            told = changes(preview(blind, "deletePart", id=part.pk))
        assert told["supplier"] == {"old": None}
        counts.append(len(statements))
    assert counts[0] == counts[1]


# --- it leaves no trace -------------------------------------------------------------------------------------------


def test_what_waits_for_the_commit_does_not_run(
    desk: Desk, part: Any, monkeypatch: pytest.MonkeyPatch, django_capture_on_commit_callbacks: Any
) -> None:
    calls: list[str] = []

    def saved(**_: Any) -> None:
        transaction.on_commit(lambda: calls.append("committed"))

    models.signals.post_save.connect(saved, sender=shop.Part)
    try:
        with django_capture_on_commit_callbacks(execute=True):
            preview(desk, "updatePart", id=part.pk, name="n")
        assert calls == []
        with django_capture_on_commit_callbacks(execute=True):
            run(desk, "updatePart", id=part.pk, name="n")
        assert calls == ["committed"]
    finally:
        models.signals.post_save.disconnect(saved, sender=shop.Part)


@pytest.mark.parametrize("how", ["declared", "no transactions"])
def test_where_nothing_may_be_tried_nothing_is_saved(
    desk: Desk, part: Any, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    if how == "declared":
        binding = replace(desk.bindings["PartManager"], preview=False)
        desk = Desk({**desk.bindings, "PartManager": binding}, desk.actor)
    else:
        monkeypatch.setattr(connection.features, "supports_transactions", False)

    def fail(self: Any, *_: Any, **__: Any) -> None:
        raise AssertionError("it was tried")

    monkeypatch.setattr(shop.Part, "save", fail)
    monkeypatch.setattr(shop.Part, "delete", fail)
    tag = shop.Tag.objects.earliest("pk")
    told = preview(desk, "updatePart", id=part.pk, price="12", material=part.brass.pk, tags=[tag.pk])
    assert told["tried"] is False
    shown = changes(told)
    assert shown["price"] == {"old": "9.90", "new": "12"}
    assert shown["material"]["new_label"] == "Brass"
    assert shown["tags"] == {"old": [], "old_label": [], "new": [tag.pk], "new_label": [tag.name]}
    assert changes(preview(desk, "createPart", number="N", name="n", material=part.brass.pk)).keys() == {
        *("number", "name", "material"),
    }
    assert preview(desk, "deletePart", id=part.pk)["also_deleted"] == []
    told = preview(desk, "retirePart", id=part.pk, reason="old")
    assert (told["changes"], told["arguments"][0]["label"]) == ([], "Too old")
    with refused("validation_failed"):
        preview(desk, "updatePart", id=part.pk, name="")


def test_its_deadline_counts(desk: Desk, part: Any) -> None:
    call = build_call("updatePart", {"id": part.pk, "name": "n"}, desk.view)
    with refused("timeout"):
        preview_mutation(call, desk.bindings, desk.actor, deadline=time.monotonic() - 1)


@pytest.mark.parametrize("do", [preview, run])
def test_what_would_fail_is_refused_before_anybody_is_asked(desk: Desk, part: Any, do: Any) -> None:
    taken = shop.Part.objects.exclude(pk=part.pk).earliest("pk").number
    with refused("validation_failed") as details:
        do(desk, "updatePart", id=part.pk, number=taken, name="")
    assert set(details["fields"]) == {"number", "name"}
    with refused("validation_failed", "other data still refers to it"):
        do(desk, "deleteMaterial", id=part.material_id)


@pytest.mark.parametrize("do", [preview, run])
@pytest.mark.parametrize(
    ("how", "code", "says"),
    [
        ("invalid", "validation_failed", "how: not so and not at all"),
        ("denied", "permission_denied", "you may not run fail like this"),
        ("told", "closed", "the shop is closed"),
        ("taken", "validation_failed", "the database refuses it"),
    ],
)
def test_an_own_mutation_may_refuse(desk: Desk, do: Any, how: str, code: str, says: str) -> None:
    with refused(code, says) as details:
        do(desk, "fail", how=how)
    assert "secret" not in to_json(details)
    assert not shop.Tag.objects.filter(name="trace").exists()


@pytest.mark.parametrize(("how", "error"), [("strange", TypeError), ("broken", LookupError)])
def test_an_own_mutation_that_breaks_is_not_answered(desk: Desk, how: str, error: type[Exception]) -> None:
    for do in (preview, run):
        with pytest.raises(error):
            do(desk, "fail", how=how)
    assert not shop.Tag.objects.filter(name="trace").exists()


# --- running one's own --------------------------------------------------------------------------------------------


def test_an_own_mutation_gets_what_its_annotations_say(desk: Desk, part: Any) -> None:
    other, tag = shop.Part.objects.earliest("pk"), shop.Tag.objects.earliest("pk")
    data = run(desk, "retirePart", id=part.pk, reason="worn", replacement=other.pk, tags=[tag.pk])
    assert data == {"why": "Worn out", "by": other.number, "tags": [tag.name], "who": "staff"}
    part.refresh_from_db()
    assert part.status == "obsolete"
    assert run(desk, "retirePart", id=part.pk, reason="old", replacement=None)["by"] is None
    assert run(desk, "scrap", id=part.pk) == {"id": part.pk}
    assert not shop.Part.objects.filter(pk=part.pk).exists()
    assert run(desk, "count", reasons=["old"], numbers=[2], since="2024-01-01") == {"result": 3}
    with pytest.raises(ToolError, match="numbers: expected a list of at most 500 values"):
        build_call("count", {"reasons": [], "numbers": 5}, desk.view)
    with pytest.raises(ToolError, match="'no' is not one of its choices"):
        build_call("count", {"reasons": ["no"], "numbers": []}, desk.view)


# --- expected values ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "expected",
    [
        {"price": "9.9", "status": "In design", "weight": None},
        {"NAME": "Bolt", "attributes": {}, "supplier": None},
        {"created_at": "now", "materialId": "its", "purchased": False},
    ],
)
def test_a_row_that_is_as_expected_is_changed(desk: Desk, part: Any, expected: dict[str, Any]) -> None:
    known = {"created_at": part.created_at.isoformat(), "materialId": part.material_id}
    expected = {name: known.get(name, value) for name, value in expected.items()}
    for name, values in (("updatePart", {"name": "n"}), ("deletePart", {}), ("retirePart", {"reason": "old"})):
        preview(desk, name, expected, id=part.pk, **values)
    assert run(desk, "updatePart", expected, id=part.pk, name="n")["name"] == "n"


def test_a_row_that_is_not_as_expected_is_left_alone(desk: Desk, part: Any) -> None:
    for do in (preview, run):
        with refused("conflict", 'PartManager .* is not as expected: price is "9.90", not "8.00"') as details:
            do(desk, "updatePart", {"price": "8.00", "name": "Bolt"}, id=part.pk, name="n")
        assert details["fields"] == {"price": {"expected": "8.00", "current": "9.90"}}
    for name, values in (("deletePart", {}), ("retirePart", {"reason": "old"})):
        with refused("conflict"):
            run(desk, name, {"material": part.brass.pk}, id=part.pk, **values)
    part.refresh_from_db()
    assert (part.name, part.status) == ("Bolt", "draft")


def test_a_hidden_row_that_is_referred_to_is_expected_to_be_none(desk: Desk, part: Any) -> None:
    blind = hiding(desk, "MaterialManager", lambda rows, actor: rows.exclude(name="Steel"))
    run(blind, "updatePart", {"material": None}, id=part.pk, name="n")
    with refused("conflict") as details:
        run(blind, "updatePart", {"material": part.material_id}, id=part.pk, name="n")
    assert details["fields"] == {"material": {"expected": part.material_id, "current": None}}


# --- what was shown must still hold -------------------------------------------------------------------------------


def test_what_was_shown_and_still_holds_runs(desk: Desk, part: Any) -> None:
    tag = shop.Tag.objects.earliest("pk")
    values = {"id": part.pk, "price": "12", "material": part.brass.pk, "tags": [tag.pk]}
    run(desk, "updatePart", shown=preview(desk, "updatePart", **values), **values)
    part.refresh_from_db()
    assert (part.price, part.material_id, list(part.tags.all())) == (Decimal("12.00"), part.brass.pk, [tag])
    for name, more in (("retirePart", {"reason": "old"}), ("deletePart", {})):
        run(desk, name, shown=preview(desk, name, id=part.pk, **more), id=part.pk, **more)
    created = {"number": "N", "name": "n", "material": part.brass.pk}
    run(desk, "createPart", shown=preview(desk, "createPart", **created), **created)
    assert not shop.Part.objects.filter(pk=part.pk).exists()


@pytest.mark.parametrize(
    ("name", "values", "changed", "conflict"),
    [
        ("updatePart", {"price": "12"}, {"price": Decimal("9.00")}, "price"),
        ("updatePart", {"price": "9.90"}, {"price": Decimal("9.00")}, "price"),
        ("updatePart", {"price": "12"}, {"name": "other"}, None),
        ("deletePart", {}, {"weight": 1.5}, "weight"),
        ("retirePart", {"reason": "old"}, {"status": "released"}, "status"),
    ],
)
def test_what_changed_since_it_was_shown_is_not_overwritten(
    desk: Desk, part: Any, name: str, values: dict[str, Any], changed: dict[str, Any], conflict: str | None
) -> None:
    shown = preview(desk, name, id=part.pk, **values)
    shop.Part.objects.filter(pk=part.pk).update(**changed)
    if conflict is None:
        run(desk, name, shown=shown, id=part.pk, **values)
        return
    with refused("conflict") as details:
        run(desk, name, shown=shown, id=part.pk, **values)
    assert list(details["fields"]) == [conflict]
    assert "current" in details["fields"][conflict]
    left = shop.Part.objects.get(pk=part.pk)
    assert {name: getattr(left, name) for name in changed} == changed


def test_tags_that_came_since_are_a_conflict(desk: Desk, part: Any) -> None:
    one, two = shop.Tag.objects.order_by("pk")[:2]
    shown = preview(desk, "updatePart", id=part.pk, tags=[one.pk])
    part.tags.add(two)
    with refused("conflict") as details:
        run(desk, "updatePart", shown=shown, id=part.pk, tags=[one.pk])
    assert details["fields"] == {"tags": {"expected": [], "current": [two.pk]}}


def test_more_rows_that_would_go_along_are_a_conflict(desk: Desk, part: Any) -> None:
    shown = preview(desk, "deletePart", id=part.pk)
    shop.Document.objects.create(title="new", part=part)
    with refused("conflict", 'also_deleted is .*"rows":1') as details:
        run(desk, "deletePart", shown=shown, id=part.pk)
    assert details["fields"]["also_deleted"]["expected"] == []


def test_what_is_expected_is_shown_and_so_bound(desk: Desk, part: Any) -> None:
    """The expected values are not kept beside what was shown: they stand in it."""
    shown = preview(desk, "updatePart", {"status": "draft"}, id=part.pk, name="n")
    assert {"field": "status", "old": "draft", "old_label": "In design", "new": "draft", "new_label": "In design"} in (
        shown["changes"]
    )
    shop.Part.objects.filter(pk=part.pk).update(status="released")
    with refused("conflict", "status"):
        run(desk, "updatePart", shown=shown, id=part.pk, name="n")


def test_a_field_that_is_hidden_by_now_does_not_tell_its_value(desk: Desk, part: Any) -> None:
    shown = preview(desk, "deletePart", id=part.pk)
    blind = hiding(desk, "PartManager", fields=lambda names, actor: names - {"price"})
    shop.Part.objects.filter(pk=part.pk).update(price=Decimal("7.77"))
    with refused("conflict", 'price is not "9.90"') as details:
        run(blind, "deletePart", shown=shown, id=part.pk)
    assert details["fields"] == {"price": {"expected": "9.90"}}


def test_a_row_that_is_gone_by_now_is_not_found(desk: Desk, part: Any) -> None:
    shown = preview(desk, "updatePart", id=part.pk, name="n")
    part.delete()
    with refused("not_found"):
        run(desk, "updatePart", shown=shown, id=part.pk or 10**9, name="n")
