from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth.models import Permission
from testproject.calling import call
from testproject.shop import models as shop

from gm_chat.managers.index import SchemaIndex
from gm_chat.managers.service import DataService
from gm_chat.managers.source import DjangoModelSource
from gm_chat.plugin import ToolError
from gm_chat.tools import mutate, query

if TYPE_CHECKING:
    from collections.abc import Callable

    from gm_chat.plugin import ToolContext

    Contexts = Callable[..., ToolContext]

ALLOWED = ["createTag", "updateTag", "deleteTag"]


def run(context: ToolContext, mutation: Any, values: Any) -> Any:
    return call(mutate, {"mutation": mutation, "input": values}, context)


def refused(context: ToolContext, mutation: Any, values: Any) -> ToolError:
    with pytest.raises(ToolError) as caught:
        run(context, mutation, values)
    return caught.value


def test_an_allowed_mutation_runs(context_for: Contexts) -> None:
    result = run(context_for("staff", allowed_mutations=ALLOWED), "createTag", {"name": "fresh"})
    assert result == {"status": "executed", "data": {"id": result["data"]["id"], "name": "fresh"}}
    assert shop.Tag.objects.filter(name="fresh").count() == 1


def test_a_confirmed_one_waits_for_its_approval(context_for: Contexts) -> None:
    settings: dict[str, Any] = {"allowed_mutations": ALLOWED, "confirm_mutations": ["createTag"]}
    waiting = run(context_for("staff", **settings), "createTag", {"NAME": "later"})
    assert waiting == {
        "status": "confirmation_required",
        "mutation": "createTag",
        "input": {"NAME": "later"},
        "preview": {
            "action": "create",
            "manager": "TagManager",
            "tried": True,
            "changes": [{"field": "name", "new": "later"}],
        },
    }
    assert not shop.Tag.objects.filter(name="later").exists()
    done = run(context_for("staff", approved=True, **settings), "createTag", {"NAME": "later"})
    assert done["status"] == "executed"


def test_nobody_is_asked_to_confirm_what_cannot_run(context_for: Contexts) -> None:
    settings: dict[str, Any] = {"allowed_mutations": ALLOWED, "confirm_mutations": ALLOWED}
    assert (refused(context_for("staff", **settings), "createTag", {"nmae": "x"})).code == "invalid_argument"
    assert (refused(context_for("plain", **settings), "createTag", {"name": "x"})).code == "mutation_not_allowed"
    taken = shop.Tag.objects.earliest("pk").name
    assert (refused(context_for("staff", **settings), "createTag", {"name": taken})).code == "validation_failed"
    assert (refused(context_for("staff", **settings), "deleteTag", {"id": 10**9})).code == "not_found"


def test_expected_values_are_checked_before_and_after_the_approval(context_for: Contexts) -> None:
    settings: dict[str, Any] = {"allowed_mutations": ALLOWED, "confirm_mutations": ["updateTag"]}
    tag = shop.Tag.objects.create(name="old")
    args = {"mutation": "updateTag", "input": {"id": tag.pk, "name": "new"}, "expected": {"name": "older"}}
    with pytest.raises(ToolError, match='name is "old", not "older"'):
        call(mutate, args, context_for("staff", **settings))
    args["expected"] = {"name": "old"}
    preview = call(mutate, args, context_for("staff", **settings))["preview"]
    assert preview["changes"] == [{"field": "name", "old": "old", "new": "new"}]
    approved = replace(context_for("staff", approved=True, **settings), shown=preview)
    shop.Tag.objects.filter(pk=tag.pk).update(name="meanwhile")
    with pytest.raises(ToolError, match='name is "meanwhile", not "old"') as caught:
        call(mutate, args | {"expected": {}}, approved)
    assert caught.value.code == "conflict"
    shop.Tag.objects.filter(pk=tag.pk).update(name="old")
    assert call(mutate, args, approved)["status"] == "executed"
    assert shop.Tag.objects.get(pk=tag.pk).name == "new"


def test_new_values_as_expected_ones_are_told_apart_from_a_change_by_others(context_for: Contexts) -> None:
    context = context_for("staff", allowed_mutations=ALLOWED)
    tag = shop.Tag.objects.create(name="old")
    args = {"mutation": "updateTag", "input": {"id": tag.pk, "name": "new"}, "expected": {"name": "new"}}
    with pytest.raises(ToolError, match=r'name is "old", not "new"; expected takes values from before') as caught:
        call(mutate, args, context)
    assert caught.value.details["fields"] == {"name": {"expected": "new", "current": "old"}}
    assert caught.value.details["corrected"] == {"mutation": "updateTag", "input": args["input"]}
    for expected in ({"name": "other"}, {"name": "new", "id": tag.pk + 1}):
        with pytest.raises(ToolError) as caught:
            call(mutate, args | {"expected": expected}, context)
        assert (caught.value.code, "corrected" in caught.value.details) == ("conflict", False)
    assert shop.Tag.objects.get(pk=tag.pk).name == "old"
    assert call(mutate, {"mutation": "updateTag", "input": args["input"]}, context)["status"] == "executed"


@pytest.mark.parametrize(
    ("values", "look_up"),
    [
        ({"id": 10**9, "name": "x"}, {}),
        ({"id": "123456789", "name": "x"}, {}),
        ({"name": "x"}, {}),
        ({"id": "rusty", "name": "x"}, {"filters": {"name__icontains": "rusty"}}),
        ({"id": "x" * 201, "name": "x"}, {}),
    ],
)
def test_an_id_that_was_made_up_is_to_be_looked_up(
    values: dict[str, Any], look_up: dict[str, Any], context_for: Contexts
) -> None:
    context = context_for("staff", allowed_mutations=ALLOWED)
    error = refused(context, "updateTag", values)
    assert error.message.endswith("; query finds the id of the row")
    assert error.details["look_up"] == {"manager": "TagManager", "fields": ["id", "name"], **look_up}
    assert "corrected" not in error.details
    shop.Tag.objects.create(name="rusty iron")
    rows = call(query, error.details["look_up"], context)["data"]
    assert {"name": "rusty iron"}.items() <= rows[-1].items()


def test_an_id_of_a_row_that_somebody_else_sees_is_no_id(context_for: Contexts) -> None:
    hidden = shop.Order.objects.exclude(owner__username="plain").first()
    assert hidden is not None
    settings: dict[str, Any] = {"allowed_mutations": ["updateOrder"]}
    for username in ("staff", "plain"):
        error = refused(context_for(username, **settings), "updateOrder", {"id": str(hidden.pk), "number": "X"})
        assert ("corrected" in error.details) is (username == "staff")


def test_an_id_that_the_actor_cannot_see_is_not_looked_up(
    context_for: Contexts, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = context_for("staff", allowed_mutations=ALLOWED)
    view = context.managers.view

    async def without_ids(actor: Any) -> Any:
        seen = await view(actor)
        get = seen.get

        def of(name: str) -> Any:
            info = get(name)
            return info and replace(info, fields=tuple(item for item in info.fields if item.name != "id"))

        monkeypatch.setattr(type(seen), "get", lambda self, name: of(name))
        return seen

    monkeypatch.setattr(context.managers, "view", without_ids)
    for values in ({"id": "1", "name": "x"}, {"id": 10**9, "name": "x"}, {"name": "x"}):
        assert "look_up" not in refused(context, "updateTag", values).details


def test_a_row_has_several_names(context_for: Contexts) -> None:
    error = refused(context_for("staff", allowed_mutations=["deletePart"]), "deletePart", {"id": "P-000"})
    assert error.details["look_up"]["filters"] == {"or": [{"number__icontains": "P-000"}, {"name__icontains": "P-000"}]}


def test_a_value_in_quotes_is_shown_without_them(context_for: Contexts) -> None:
    tag = shop.Tag.objects.create(name="old")
    error = refused(context_for("staff", allowed_mutations=ALLOWED), "updateTag", {"id": str(tag.pk), "name": "new"})
    assert error.details["corrected"] == {"mutation": "updateTag", "input": {"id": tag.pk, "name": "new"}}
    assert shop.Tag.objects.get(pk=tag.pk).name == "old"


def test_a_row_that_does_not_exist_yet_is_expected_to_be_nothing(context_for: Contexts) -> None:
    context = context_for("staff", allowed_mutations=ALLOWED)
    for expected in ({"name": "x"}, {"unknown": 1}):
        args = {"mutation": "createTag", "input": {"name": "x"}, "expected": expected}
        with pytest.raises(ToolError, match="leave out expected") as caught:
            call(mutate, args, context)
        assert caught.value.details["corrected"] == {"mutation": "createTag", "input": {"name": "x"}}
    with pytest.raises(ToolError) as caught:
        call(mutate, args | {"input": {}}, context)
    assert "corrected" not in caught.value.details


def test_a_source_that_cannot_tell_shows_the_input_alone(context_for: Contexts, users: dict[str, Any]) -> None:
    class Plain:
        """A manager source with the methods of every source."""

        name = "plain"

        def __init__(self) -> None:
            self.source = DjangoModelSource()
            for method in ("describe", "visibility", "execute", "mutate"):
                setattr(self, method, getattr(self.source, method))

    source: Any = Plain()
    service = DataService(SchemaIndex.build(source.describe()), [source])
    settings: dict[str, Any] = {"allowed_mutations": ALLOWED, "confirm_mutations": ["createTag"]}
    context = replace(context_for("staff", **settings), managers=service)
    waiting = run(context, "createTag", {"name": "x"})
    assert waiting == {"status": "confirmation_required", "mutation": "createTag", "input": {"name": "x"}}
    tag = shop.Tag.objects.earliest("pk")
    for name in ("deleteTag", "updateTag"):
        args = {"mutation": name, "input": {"id": tag.pk, "name": "y"}, "expected": {"name": tag.name}}
        args["input"] = {"id": tag.pk} if name == "deleteTag" else args["input"]
        confirmed = replace(context, settings={**settings, "confirm_mutations": ["deleteTag"]})
        with pytest.raises(ToolError, match="cannot be bound to old values") as caught:
            call(mutate, args, confirmed)
        assert caught.value.code == "unsupported"


def test_checks_come_in_order(context_for: Contexts) -> None:
    """Name form, input keys, allow-list, login: each wrong call is wrong in all later ways too."""
    nobody = context_for(None)
    assert (refused(nobody, "no name!", {"no key!": 1})).message.startswith("mutation must be a name")
    assert "no key!" in (refused(nobody, "createTag", {"no key!": 1})).message
    assert (refused(nobody, "createTag", {"nmae": 1})).code == "mutation_not_allowed"
    allowing = context_for(None, allowed_mutations=ALLOWED)
    assert (refused(allowing, "createTag", {"nmae": 1})).code == "authentication_required"
    plain = context_for("plain", allowed_mutations=ALLOWED)
    assert (refused(plain, "createTag", {"nmae": 1})).code == "mutation_not_allowed"
    staff = context_for("staff", allowed_mutations=ALLOWED)
    assert (refused(staff, "createTag", {"nmae": 1})).code == "invalid_argument"


@pytest.mark.parametrize(
    ("mutation", "values"),
    [
        (None, {}),
        (5, {}),
        ("", {}),
        ("a b", {}),
        ("x" * 300, {}),
        ("createTag", None),
        ("createTag", []),
        ("createTag", {1: 2}),
    ],
)
def test_forms(mutation: Any, values: Any, context_for: Contexts) -> None:
    assert (refused(context_for("staff"), mutation, values)).code == "invalid_argument"


@pytest.mark.parametrize("expected", [None, [], "x", {1: 2}, {"no name!": 1}])
def test_forms_of_expected(expected: Any, context_for: Contexts) -> None:
    with pytest.raises(ToolError) as caught:
        call(mutate, {"mutation": "deleteTag", "input": {"id": 1}, "expected": expected}, context_for(None))
    assert caught.value.code == "invalid_argument"
    assert caught.value.message.startswith("expected")


def test_only_what_the_actor_could_run_is_offered(context_for: Contexts) -> None:
    allowed = [*ALLOWED, "createPart", "shipOrder"]
    error = refused(context_for("staff", allowed_mutations=allowed), "createTga", {"name": "x"})
    assert error.code == "mutation_not_allowed"
    assert error.details["allowed"][0] == "createTag"
    assert sorted(error.details["allowed"]) == sorted([*ALLOWED, "createPart"])
    assert (refused(context_for("plain", allowed_mutations=allowed), "x", {})).details["allowed"] == []


def test_a_permission_that_is_gone_is_noticed(context_for: Contexts, users: dict[str, Any]) -> None:
    users["plain"].user_permissions.add(Permission.objects.get(codename="add_tag"))
    context = context_for("plain", allowed_mutations=ALLOWED)
    assert (run(context, "createTag", {"name": "one"}))["status"] == "executed"
    users["plain"].user_permissions.clear()
    for cache in ("_perm_cache", "_user_perm_cache"):
        delattr(users["plain"], cache)
    assert (refused(context, "createTag", {"name": "two"})).code == "mutation_not_allowed"
