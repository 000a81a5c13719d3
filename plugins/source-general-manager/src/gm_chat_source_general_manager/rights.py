"""What a manager's ``Permission`` lets a user read: as SQL where it can be said so, else row by row.

GeneralManager itself says which it is: its read plan holds filters, and whether each row must be asked as well. A field
may have a rule of its own. One that asks only who the user is shows or hides the field; any other is asked for each
row, and such a field can be shown, but nothing can be found by it.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any, Final

from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import EmptyResultSet, FieldError, ValidationError
from django.db.models import Q
from general_manager.permission import AdditiveManagerPermission, OverrideManagerPermission

from gm_chat.plugin import ToolError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from django.db.models import QuerySet

    from gm_chat.plugin import Actor

__all__ = ["Gate", "user_of"]

_OF_USERS: Final = frozenset({"public", "isAdmin", "isAuthenticated", "isActive", "hasPermission", "inGroup"})
"""GeneralManager's own rules that never look at the row."""
_JUDGES: Final = (
    *("check_permission", "check_operation_permission", "can_read_instance", "validate_permission_string"),
    *("get_read_permission_plan", "get_permission_filter"),
)


def user_of(actor: Actor) -> Any:
    """The user whom GeneralManager asks about; nobody for those who may not log in."""
    user = actor.user if actor.is_authenticated else None
    return AnonymousUser() if user is None or not getattr(user, "is_active", True) else user


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """The read rules of one manager.

    ``attributes`` maps members by our name to GeneralManager's. ``by_user`` are those with a rule that only asks who
    the user is, ``by_row`` those with any other. A ``Permission`` that decides by code of its own is not
    ``is_declared``: it is asked about each row, and a row of which it hides a member is hidden.
    """

    manager: Any
    attributes: Mapping[str, str]
    is_declared: bool = True
    by_user: Mapping[str, Sequence[str]] = field(default_factory=dict)
    by_row: frozenset[str] = frozenset()

    @classmethod
    def of(cls, manager: Any, attributes: Mapping[str, str]) -> Gate:
        """Read the declaration. Uses no database."""
        if not _is_declared(manager):
            return cls(manager=manager, attributes=attributes, is_declared=False)
        by_user: dict[str, Sequence[str]] = {}
        by_row: set[str] = set()
        permission = manager.Permission(manager, AnonymousUser())
        usual = permission.describe_operation_permissions("read")
        for name, attribute in attributes.items():
            rule = _own_rule(manager.Permission, attribute)
            if rule is None and permission.describe_permissions("read", attribute) == usual:
                continue
            if rule is not None and _delegate(manager) is None and all(map(_is_of_users, rule)):
                by_user[name] = rule
            else:
                by_row.add(name)
        return cls(manager=manager, attributes=attributes, by_user=by_user, by_row=frozenset(by_row))

    def plan(self, user: Any) -> Any:
        """GeneralManager's own plan for reading rows as this user. May use the ORM."""
        return self.manager.Permission(self.manager, user).get_read_permission_plan()

    def hidden(self, user: Any) -> frozenset[str]:
        """The members that the user may read of no row."""
        permission = self.manager.Permission(self.manager, user)
        if getattr(user, "is_superuser", False):
            return frozenset()
        return frozenset(
            name
            for name, rule in self.by_user.items()
            if rule and not any(permission.validate_permission_string(each) for each in rule)
        )

    def is_always_open(self, plan: Any, user: Any) -> bool:
        """Whether no row is hidden from the user."""
        return plan.decision == "allow_all" and self._is_exact(plan, user)

    def _is_exact(self, plan: Any, user: Any) -> bool:
        is_trusted = self.is_declared or getattr(user, "is_superuser", False)
        says_something = bool(plan.filters) or plan.decision == "allow_all"
        return bool(is_trusted and says_something and not plan.requires_instance_check)

    def rows(self, rows: QuerySet[Any], user: Any, limit: int, narrow: Q | None = None) -> QuerySet[Any]:
        """The rows that the user may read; of them only those that satisfy ``narrow`` if each must be asked.

        Raises ``ToolError("too_large")`` if that would be more than ``limit``.
        """
        plan = self.plan(user)
        if plan.decision == "deny_all":
            return rows.none()
        try:
            candidates = _satisfying(rows, plan.filters)
        except (FieldError, ValidationError, ValueError, TypeError, LookupError):
            candidates = rows  # a filter that the model does not know says nothing: each row is asked
        else:
            if self._is_exact(plan, user):
                return candidates
        candidates = candidates if narrow is None else candidates.filter(narrow)
        found = list(candidates[: limit + 1])
        if len(found) > limit:
            raise ToolError(
                "too_large",
                f"the permissions of {self.manager.__name__} must be asked for each row, and there are more than "
                f"{limit}; narrow it by its own fields",
            )
        return rows.filter(pk__in=[row.pk for row in found if self._may_read(row, user)])

    def _may_read(self, row: Any, user: Any) -> bool:
        permission = self.permission(row, user)
        if not permission.can_read_instance():
            return False
        return self.is_declared or all(permission.check_permission("read", name) for name in self.attributes.values())

    def permission(self, row: Any, user: Any) -> Any:
        """The manager's ``Permission`` for one row of its model."""
        return self.manager.Permission(self.item(row), user)

    def item(self, row: Any) -> Any:
        """The manager of a row that has been read; no statement is run."""
        return self.manager._from_trusted_orm_instance(row)

    def may_read(self, row: Any, name: str, user: Any) -> bool:
        """Whether the user may read one member of a visible row."""
        return name not in self.by_row or bool(
            self.permission(row, user).check_permission("read", self.attributes[name])
        )


def _satisfying(rows: QuerySet[Any], filters: Sequence[Mapping[str, Any]]) -> QuerySet[Any]:
    """The rows that satisfy one of GeneralManager's constraints; all of them if there is none."""
    found = [rows.filter(**(each.get("filter") or {})).exclude(**(each.get("exclude") or {})) for each in filters]
    for each in found:
        with suppress(EmptyResultSet):  # no row satisfies it, whatever the table holds
            str(each.values("pk").query)  # compiled: what a column cannot be compared with is refused here
    if len(found) < 2:
        return found[0] if found else rows
    return rows.filter(reduce(or_, (Q(pk__in=each.order_by().values("pk")) for each in found)))


# --- what is declared -------------------------------------------------------------------------------------------


def _is_declared(manager: Any, seen: tuple[Any, ...] = ()) -> bool:
    """Whether rules alone decide: here, and in the manager that the permission is based on."""
    permission = manager.Permission
    if not issubclass(permission, AdditiveManagerPermission | OverrideManagerPermission):
        return False
    if not all(getattr(permission, name).__module__.startswith("general_manager.") for name in _JUDGES):
        return False
    base = _delegate(manager)
    if base is None:
        return True
    found = manager.Interface.get_attribute_types().get(base, {}).get("type")
    return hasattr(found, "Permission") and found not in seen and _is_declared(found, (*seen, manager))


def _delegate(manager: Any) -> str | None:
    return getattr(manager.Permission, "__based_on__", None)


def _own_rule(permission: Any, attribute: str) -> Sequence[str] | None:
    rules = getattr(permission, attribute, None)
    return rules.get("read") if isinstance(rules, dict) else None


def _is_of_users(rule: str) -> bool:
    return all(part.split(":")[0] in _OF_USERS for part in rule.split("&"))
