"""What an actor may see and change, by Django's own permissions.

=====================  =====================================================================================
a public manager       is visible to everybody
any other              to a logged-in user with ``view_<model>`` (superusers have every permission)
create, update, delete to a logged-in user who sees the manager and has ``add_``, ``change_``, ``delete_<model>``
a relation             where its target manager is visible too, and of a many-to-many relation whose through model
                       has exposed managers, one of those
``visible_fields``     narrows fields and relations further
``visible_to``         narrows rows: no concern of this module but for saying so
=====================  =====================================================================================
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

from django.contrib.auth import get_permission_codename

from gm_chat.encoding import canonical_json
from gm_chat.managers.api import ManagerVisibility, Visibility

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gm_chat.managers.api import RelationInfo
    from gm_chat.managers.binding import Binding
    from gm_chat.plugin.context import Actor

__all__ = ["visibility_of"]

_PERMISSIONS: Final = {"create": "add", "update": "change", "delete": "delete"}


def visibility_of(actor: Actor, bindings: Mapping[str, Binding]) -> Visibility:
    """Work out the actor's rights on every exposed manager. Blocking: permission backends may use the ORM."""
    user = actor.user if actor.is_authenticated else None
    visible = {name for name, binding in bindings.items() if binding.info.exposed and _may_view(user, binding)}
    managers = {name: _rights(actor, user, name, bindings, visible) for name in sorted(visible)}
    return Visibility(fingerprint=_fingerprint(managers), managers=managers)


def _may_view(user: Any, binding: Binding) -> bool:
    return binding.info.public or _has(user, "view", binding)


def _has(user: Any, action: str, binding: Binding) -> bool:
    if user is None:
        return False
    options = binding.model._meta
    return bool(user.has_perm(f"{options.app_label}.{get_permission_codename(action, options)}"))


def _rights(
    actor: Actor, user: Any, name: str, bindings: Mapping[str, Binding], visible: set[str]
) -> ManagerVisibility:
    binding = bindings[name]
    info = binding.info
    fields = frozenset(item.name for item in info.fields)
    relations = frozenset(item.name for item in info.relations if _reaches(item, binding, visible))
    if binding.visible_fields is not None:
        shown = frozenset(binding.visible_fields(fields | relations, actor))
        fields, relations = fields & shown, relations & shown
    mutations = frozenset(
        item.name for item in info.mutations if item.kind != "custom" and _has(user, _PERMISSIONS[item.kind], binding)
    )
    joined = {name} | {through for relation in relations for through in binding.relations[relation].through}
    hidden = any(bindings[each].visible_to is not None for each in joined)
    return ManagerVisibility(fields, relations, mutations, rows_may_be_hidden=hidden)


def _reaches(relation: RelationInfo, binding: Binding, visible: set[str]) -> bool:
    """Whether the actor sees the target, and of a many-to-many relation a manager of what joins the sides, if any."""
    through = binding.relations[relation.name].through
    return relation.target in visible and (not through or not visible.isdisjoint(through))


def _fingerprint(managers: Mapping[str, ManagerVisibility]) -> str:
    rights = {
        name: [item.fields, item.relations, item.mutations, item.rows_may_be_hidden] for name, item in managers.items()
    }
    return hashlib.sha256(canonical_json(rights).encode()).hexdigest()
