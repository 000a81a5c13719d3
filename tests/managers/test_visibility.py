from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import AnonymousUser, Group, Permission, User
from django.core.exceptions import PermissionDenied
from django.test import override_settings
from testproject.shop import models as shop

from gm_chat.managers import ModelManager, expose, mutation, registry
from gm_chat.managers.visibility import Rights, may_run, visibility_of
from gm_chat.plugin import Actor

pytestmark = pytest.mark.django_db


def user(*permissions: str, **attributes: Any) -> User:
    made = User.objects.create(username=f"user{User.objects.count()}", **attributes)
    made.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    return User.objects.get(pk=made.pk)


def actor(of: User) -> Actor:
    return Actor(user_id=str(of.pk), user=of)


def test_nobody_sees_public_managers_only() -> None:
    seen = visibility_of(Actor(session_key="abc"), registry.bindings())
    assert list(seen.managers) == ["AnnouncementManager"]
    announcement = seen.managers["AnnouncementManager"]
    assert announcement.fields == {"id", "title", "published_on"}
    assert announcement.relations == frozenset()  # it leads to parts
    assert announcement.mutations == frozenset()
    assert not announcement.rows_may_be_hidden


@pytest.mark.parametrize("of", [None, AnonymousUser()])
def test_an_actor_without_an_id_is_nobody(of: Any) -> None:
    assert list(visibility_of(Actor(user=of), registry.bindings()).managers) == ["AnnouncementManager"]


def test_superusers_see_and_may_do_everything() -> None:
    bindings = registry.bindings()
    seen = visibility_of(actor(user(is_superuser=True, is_staff=True)), bindings)
    assert set(seen.managers) == set(bindings)
    for name, binding in bindings.items():
        rights = seen.managers[name]
        assert rights.mutations == {item.name for item in binding.info.mutations}
        assert rights.relations == {item.name for item in binding.info.relations}
    assert seen.managers["OrderManager"].rows_may_be_hidden
    assert not seen.managers["PartManager"].rows_may_be_hidden


def test_each_permission_does_its_part() -> None:
    someone = user("view_part", "add_part", "view_material", "delete_material", "change_supplier")
    seen = visibility_of(actor(someone), registry.bindings())
    assert set(seen.managers) == {"PartManager", "MaterialManager", "AnnouncementManager"}
    assert seen.managers["PartManager"].mutations == {"createPart"}
    assert seen.managers["PartManager"].relations == {"material"}  # not the supplier
    assert seen.managers["MaterialManager"].mutations == {"deleteMaterial"}
    assert seen.managers["AnnouncementManager"].relations == {"about"}


def test_groups_count_and_inactive_users_have_nothing() -> None:
    group = Group.objects.create(name="readers")
    group.permissions.set(Permission.objects.filter(codename="view_tag"))
    reader, gone = user(), user("view_tag", is_active=False)
    reader.groups.add(group)
    assert "TagManager" in visibility_of(actor(reader), registry.bindings()).managers
    assert "TagManager" not in visibility_of(actor(gone), registry.bindings()).managers


def test_the_fingerprint_comes_from_rights_alone() -> None:
    bindings = registry.bindings()
    one, other, third = user("view_part"), user("view_part"), user("view_part", "add_part")
    fingerprints = [visibility_of(actor(someone), bindings).fingerprint for someone in (one, other, third)]
    assert fingerprints[0] == fingerprints[1] != fingerprints[2]


def test_fields_can_depend_on_the_actor() -> None:
    bindings = registry.bindings()
    worker, boss = user("view_employee"), user("view_employee", is_staff=True)
    seen = visibility_of(actor(worker), bindings)
    assert "salary" not in seen.managers["EmployeeManager"].fields
    assert "boss" in seen.managers["EmployeeManager"].relations
    more = visibility_of(actor(boss), bindings)
    assert "salary" in more.managers["EmployeeManager"].fields
    assert seen.fingerprint != more.fingerprint


def test_hidden_managers_never_appear() -> None:
    class PaymentManager(ModelManager):
        model = shop.Payment

    with registry.using(PaymentManager, expose(shop.Order)) as bindings:
        assert set(visibility_of(actor(user(is_superuser=True)), bindings).managers) == {"OrderManager"}


def test_permissions_are_loaded_once(django_assert_max_num_queries: Any) -> None:
    someone = user("view_part")
    with django_assert_max_num_queries(2):
        visibility_of(actor(someone), registry.bindings())


def test_a_many_to_many_relation_needs_what_joins_its_sides() -> None:
    seen = visibility_of(actor(user("view_part", "view_project", "view_tag")), registry.bindings())
    assert seen.managers["ProjectManager"].relations == frozenset()
    assert "tags" in seen.managers["PartManager"].relations  # no manager shows what joins them
    seen = visibility_of(actor(user("view_part", "view_project", "view_bomline")), registry.bindings())
    assert seen.managers["ProjectManager"].relations == {"parts", "lines"}


def test_rows_may_be_hidden_where_joining_rows_may() -> None:
    bindings = dict(registry.bindings())
    bindings["BomLineManager"] = replace(bindings["BomLineManager"], visible_to=lambda rows, actor: rows)
    seen = visibility_of(actor(user("view_part", "view_project", "view_bomline")), bindings)
    assert seen.managers["ProjectManager"].rows_may_be_hidden
    seen = visibility_of(actor(user("view_part", "view_tag")), bindings)
    assert not seen.managers["PartManager"].rows_may_be_hidden


# --- who is asked, and what for ---------------------------------------------------------------------------------


@pytest.fixture
def public() -> Any:
    with registry.using(expose(shop.Material, public=True), expose(shop.Tag, public=True)) as bindings:
        yield bindings


def test_nobody_is_asked_about_public_managers_without_mutations(public: Any, django_assert_num_queries: Any) -> None:
    rights, someone = Rights(public, mutations=()), actor(user())
    with django_assert_num_queries(0):
        assert not rights.asks(someone)
        seen = rights.of(someone)
    assert set(seen.managers) == set(public)
    assert not any(item.mutations for item in seen.managers.values())
    assert rights.of(Actor()) is seen


def test_only_mutations_that_matter_are_asked_for(public: Any) -> None:
    rights = Rights(public, mutations={"updateTag", "createMaterial"})
    may = user("change_tag", "delete_tag", "change_material")
    assert rights.asks(actor(may))
    assert not rights.asks(Actor())
    seen = rights.of(actor(may)).managers
    assert {name: item.mutations for name, item in seen.items()} == {
        "MaterialManager": frozenset(),
        "TagManager": {"updateTag"},
    }
    assert rights.of(actor(user())).managers["TagManager"].mutations == frozenset()


def test_answers_are_kept_and_not_askers() -> None:
    """Equal rights give one value; a user who has lost a permission is seen to have lost it."""
    rights = Rights(registry.bindings())
    one, other = user("view_tag"), user("view_tag")
    assert rights.of(actor(one)) is rights.of(actor(other))
    one.user_permissions.clear()
    assert "TagManager" not in rights.of(actor(User.objects.get(pk=one.pk))).managers
    assert "TagManager" in rights.of(actor(other)).managers


def test_superusers_are_taken_at_their_word(django_assert_num_queries: Any) -> None:
    boss = actor(user(is_superuser=True))
    with django_assert_num_queries(0):
        assert set(visibility_of(boss, registry.bindings()).managers) == set(registry.bindings())


class Even(ModelBackend):
    """Grants what has an even number of letters, whatever the database says, and never talks about tags."""

    def has_perm(self, user_obj: Any, perm: str, obj: Any = None) -> bool:
        if perm.endswith("_tag"):
            raise PermissionDenied
        return len(perm) % 2 == 0


class Listed(ModelBackend):
    """Knows more permissions than it lists."""

    def get_all_permissions(self, user_obj: Any, obj: Any = None) -> Any:
        return {"shop.view_part"}


class Lister:
    """Lists permissions, and has no say in any."""

    def get_all_permissions(self, user_obj: Any, obj: Any = None) -> set[str]:
        return {"shop.view_supplier"}


@pytest.mark.parametrize(
    "backends",
    [
        ["django.contrib.auth.backends.ModelBackend"],
        ["django.contrib.auth.backends.RemoteUserBackend", "django.contrib.auth.backends.ModelBackend"],
        [f"{__name__}.Even"],
        ["django.contrib.auth.backends.ModelBackend", f"{__name__}.Even"],
        [f"{__name__}.Even", "django.contrib.auth.backends.ModelBackend"],
        [f"{__name__}.Listed", "django.contrib.auth.backends.ModelBackend"],
        [f"{__name__}.Lister", "django.contrib.auth.backends.ModelBackend"],
    ],
)
@pytest.mark.parametrize("attributes", [{}, {"is_active": False}, {"is_superuser": True}])
def test_rights_are_what_has_perm_says(backends: list[str], attributes: dict[str, bool]) -> None:
    made = user("view_tag", "view_material", "change_material", **attributes)
    with override_settings(AUTHENTICATION_BACKENDS=backends):
        seen = visibility_of(actor(made), registry.bindings()).managers
        judge = User.objects.get(pk=made.pk)
        for name, binding in registry.bindings().items():
            label, model = binding.model._meta.app_label, binding.model._meta.model_name
            assert (name in seen) == (binding.info.public or judge.has_perm(f"{label}.view_{model}")), name
            for item in binding.info.mutations:
                verb = {"create": "add", "update": "change", "delete": "delete"}[item.kind]
                may = name in seen and judge.has_perm(f"{label}.{verb}_{model}")
                assert (name in seen and item.name in seen[name].mutations) == may, item.name
                assert may_run(item, actor(judge), registry.bindings()) == may, item.name


def test_a_projects_own_user_is_asked() -> None:
    class Owner:
        is_active = is_superuser = True

        def has_perm(self, permission: str) -> bool:
            return permission == "shop.view_tag"

    owner = Actor(user_id="1", user=Owner())
    assert set(visibility_of(owner, registry.bindings()).managers) == {"AnnouncementManager", "TagManager"}


def test_nobody_may_run_what_is_not_declared() -> None:
    boss, bindings = actor(user(is_superuser=True)), registry.bindings()
    update = next(item for item in bindings["TagManager"].info.mutations if item.kind == "update")
    assert may_run(update, boss, bindings)
    assert may_run(replace(update, inputs=()), boss, bindings)  # as a narrowed view has it
    assert not may_run(update, Actor(), bindings)
    assert not may_run(replace(update, name="renameTag"), boss, bindings)
    assert not may_run(replace(update, manager="PaymentManager"), boss, bindings)


def test_a_mutation_of_one_s_own_needs_the_permission_that_it_names() -> None:
    asked: list[Actor] = []

    def is_boss(of: Actor) -> bool:
        asked.append(of)
        return bool(of.user.username == "boss")

    class TagManager(ModelManager):
        chat_exposed = True
        model = shop.Tag

        @mutation
        def touch(tag: Any, actor: Any) -> None: ...

        @mutation(permission="shop.delete_part")
        def melt(actor: Any) -> None: ...

        @mutation(permission=is_boss)
        def bless(actor: Any) -> None: ...

    with registry.using(TagManager) as bindings:
        infos = {item.name: item for item in bindings["TagManager"].info.mutations}

        def rights(of: Actor) -> set[str]:
            managers = Rights(bindings).of(of).managers
            allowed = set(managers["TagManager"].mutations) if managers else set()
            assert allowed == {name for name in infos if may_run(infos[name], of, bindings)}
            return allowed

        assert rights(actor(user("view_tag"))) == set()
        assert rights(actor(user("view_tag", "change_tag"))) == {"updateTag", "touch"}
        assert rights(actor(user("view_tag", "delete_part"))) == {"melt"}
        boss = user("view_tag")
        boss.username = "boss"
        assert rights(actor(boss)) == {"bless"}
        assert rights(actor(user("change_tag", "delete_part"))) == set()
        assert rights(Actor()) == set()
        assert {item.user_id for item in asked} == {item.user_id for item in asked if item.is_authenticated}
        asked.clear()
        assert Rights(bindings, mutations={"touch"}).of(actor(boss)).managers["TagManager"].mutations == set()
        assert asked == [], "nobody is asked about what the chat does not allow"
