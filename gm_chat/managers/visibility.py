"""What an actor may see and change, by Django's own permissions.

=====================  =====================================================================================
a public manager       is visible to everybody
any other              to a logged-in user with ``view_<model>`` (superusers have every permission)
create, update, delete to a logged-in user who sees the manager and has ``add_``, ``change_``, ``delete_<model>``
a custom mutation      to one who sees the manager and has the permission that it names, else ``change_<model>``
a relation             where its target manager is visible too, and of a many-to-many relation whose through model
                       has exposed managers, one of those
``visible_fields``     narrows fields and relations further
``visible_to``         narrows rows: no concern of this module but for saying so
=====================  =====================================================================================

An actor's rights follow from the answers to a few questions: the permissions that matter to these managers, and what
each ``visible_fields`` leaves. The questions are put to each actor anew; only what follows from the answers is kept.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from itertools import compress
from typing import TYPE_CHECKING, Any, Final

from django.apps import apps
from django.contrib.auth import get_backends, get_permission_codename

from gm_chat.managers.api import ManagerVisibility, Visibility

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Container, Mapping, Sequence
    from typing import TypeAlias

    from gm_chat.managers.api import MutationInfo, RelationInfo
    from gm_chat.managers.binding import Binding, VisibleFields
    from gm_chat.plugin.context import Actor

    Question: TypeAlias = str | Callable[[Actor], bool]
    """A permission's name, or a project's own function."""

__all__ = ["Rights", "may_run", "sees", "visibility_of"]

_KEPT: Final = 256
"""How many sets of answers are remembered with what follows from them."""
_PERMISSIONS: Final = {"create": "add", "update": "change", "delete": "delete", "custom": "change"}


def visibility_of(actor: Actor, bindings: Mapping[str, Binding]) -> Visibility:
    """Work out the actor's rights on every exposed manager, once. Blocking: permission backends may use the ORM."""
    return Rights(bindings).of(actor)


def may_run(mutation: MutationInfo, actor: Actor, bindings: Mapping[str, Binding]) -> bool:
    """Whether the actor has the permissions for one mutation, as they are now. Blocking, as above."""
    binding = bindings.get(mutation.manager)
    if binding is None or not binding.info.exposed:
        return False
    rule = _Rule.of(binding, {mutation.name})  # by its name: what the call brings along is the actor's view of it
    asked = [name for name in (rule.view, *rule.mutations.values()) if name is not None]
    return mutation.name in rule.mutations and all(_answers(actor, asked))


def sees(binding: Binding, actor: Actor) -> bool:
    """Whether the actor may see anything of a manager. Blocking, as above."""
    view = _Rule.of(binding, ()).view
    return view is None or all(_answers(actor, [view]))


class Rights:
    """The rights that there are on a set of managers, and who has them. Made once, safe to use from several threads."""

    def __init__(self, bindings: Mapping[str, Binding], mutations: Container[str] | None = None) -> None:
        """Take the managers, and the names of the mutations whose permissions matter (``None``: all of them)."""
        self.bindings = bindings
        exposed = {name: bindings[name] for name in sorted(bindings) if bindings[name].info.exposed}
        self._rules = {name: _Rule.of(binding, mutations) for name, binding in exposed.items()}
        wanted = (name for rule in self._rules.values() for name in (rule.view, *rule.mutations.values()))
        self._questions = tuple(dict.fromkeys(name for name in wanted if name is not None))
        self._has_hooks = any(binding.visible_fields is not None for binding in exposed.values())
        self._kept_drafts = lru_cache(_KEPT)(self._drafts)
        self._kept_visibility = lru_cache(_KEPT)(self._visibility)

    def asks(self, actor: Actor) -> bool:
        """Whether :meth:`of` has to ask anybody about this actor, which may block."""
        return self._has_hooks or (actor.is_authenticated and bool(self._questions))

    def of(self, actor: Actor) -> Visibility:
        """The actor's rights on every exposed manager. Blocking where :meth:`asks` says so."""
        answers = _answers(actor, self._questions)
        if not self._has_hooks:
            return self._kept_visibility(answers, ())
        drafts = self._kept_drafts(answers)
        shown = [frozenset(draft.hook(draft.fields | draft.relations, actor)) for draft in drafts if draft.hook]
        return self._kept_visibility(answers, tuple(shown))

    def _drafts(self, answers: tuple[bool, ...]) -> list[_Draft]:
        granted = frozenset(compress(self._questions, answers))
        visible = {name for name, rule in self._rules.items() if rule.view is None or rule.view in granted}
        return [self._draft(name, visible, granted) for name in self._rules if name in visible]

    def _draft(self, name: str, visible: Collection[str], granted: Collection[Question]) -> _Draft:
        rule, binding = self._rules[name], self.bindings[name]
        return _Draft(
            name=name,
            fields=rule.fields,
            relations=frozenset(item.name for item in binding.info.relations if _reaches(item, binding, visible)),
            mutations=frozenset(item for item, permission in rule.mutations.items() if permission in granted),
            hook=binding.visible_fields,
        )

    def _visibility(self, answers: tuple[bool, ...], shown: Sequence[frozenset[str]]) -> Visibility:
        left = iter(shown)
        managers = {}
        for draft in self._kept_drafts(answers):
            fields, relations = draft.fields, draft.relations
            if draft.hook:
                kept = next(left)
                fields, relations = fields & kept, relations & kept
            hidden = self._may_hide_rows(draft.name, relations)
            managers[draft.name] = ManagerVisibility(fields, relations, draft.mutations, rows_may_be_hidden=hidden)
        return Visibility(fingerprint=_fingerprint(managers), managers=managers)

    def _may_hide_rows(self, name: str, relations: Collection[str]) -> bool:
        binding = self.bindings[name]
        joined = {name} | {through for relation in relations for through in binding.relations[relation].through}
        return any(self.bindings[each].visible_to is not None for each in joined)


@dataclass(frozen=True, slots=True)
class _Rule:
    """What a manager's declaration asks for: ``view`` (``None``: nothing) and one permission per mutation."""

    view: str | None
    mutations: Mapping[str, Question]
    fields: frozenset[str]

    @classmethod
    def of(cls, binding: Binding, mutations: Container[str] | None) -> _Rule:
        options, info = binding.model._meta, binding.info

        def permission(action: str) -> str:
            return f"{options.app_label}.{get_permission_codename(action, options)}"

        own = {name: item.permission for name, item in binding.custom.items()}
        return cls(
            None if info.public else permission("view"),
            {
                item.name: own.get(item.name) or permission(_PERMISSIONS[item.kind])
                for item in info.mutations
                if mutations is None or item.name in mutations
            },
            frozenset(item.name for item in info.fields),
        )


@dataclass(frozen=True, slots=True)
class _Draft:
    """A visible manager's rights before its ``visible_fields`` has been heard."""

    name: str
    fields: frozenset[str]
    relations: frozenset[str]
    mutations: frozenset[str]
    hook: VisibleFields | None


def _answers(actor: Actor, questions: Sequence[Question]) -> tuple[bool, ...]:
    """What ``user.has_perm()``, or a project's own function, says to each question."""
    user = actor.user if actor.is_authenticated else None
    if user is None or not questions:
        return (False,) * len(questions)
    names = [item for item in questions if isinstance(item, str)]
    held = dict(zip(names, _permitted(user, names), strict=True))
    return tuple(held[item] if isinstance(item, str) else bool(item(actor)) for item in questions)


def _permitted(user: Any, questions: Sequence[str]) -> tuple[bool, ...]:
    if not _is_judged_by_django(user):
        return tuple(bool(user.has_perm(question)) for question in questions)
    if user.is_active and user.is_superuser:
        return (True,) * len(questions)
    held = frozenset().union(*(backend.get_all_permissions(user) for backend in get_backends()))
    return tuple(map(held.__contains__, questions))


def _is_judged_by_django(user: Any) -> bool:
    """Whether ``has_perm()`` of the user and of every backend is Django's own: then it says what the sets of all
    permissions hold, and these are read at once. A project's own code is asked each question, as only it can answer.
    """
    if not apps.is_installed("django.contrib.auth"):
        return False
    # Imported here: both modules define or need models, which `django.setup()` has not loaded yet.
    from django.contrib.auth.backends import ModelBackend
    from django.contrib.auth.models import PermissionsMixin

    own: list[tuple[Any, str, type]] = [(user, "has_perm", PermissionsMixin)]
    for backend in get_backends():
        own += [(backend, "has_perm", ModelBackend), (backend, "get_all_permissions", ModelBackend)]
    return all(
        getattr(getattr(judge, method, None), "__func__", None) is getattr(owner, method)
        for judge, method, owner in own
    )


def _reaches(relation: RelationInfo, binding: Binding, visible: Collection[str]) -> bool:
    """Whether the actor sees the target, and of a many-to-many relation a manager of what joins the sides, if any."""
    through = binding.relations[relation.name].through
    return relation.target in visible and (not through or any(name in visible for name in through))


def _fingerprint(managers: Mapping[str, ManagerVisibility]) -> str:
    rights = [
        (name, sorted(item.fields), sorted(item.relations), sorted(item.mutations), item.rows_may_be_hidden)
        for name, item in managers.items()
    ]
    return hashlib.sha256(repr(rights).encode("utf-8", "surrogatepass")).hexdigest()
