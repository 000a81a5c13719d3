from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser, Group, Permission, User
from testproject.shop import models as shop

from gm_chat.managers import ModelManager, expose, registry
from gm_chat.managers.visibility import visibility_of
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
