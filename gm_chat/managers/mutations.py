"""Runs mutations over Django models, each in one transaction that either counts whole or not at all.

A *preview* is the same mutation in a transaction that is rolled back: what it tells is what happens, and what could not
happen is not put before anybody. The model's own ``full_clean()`` and ``save()`` decide what is valid. Callbacks of
``transaction.on_commit()`` do not run then; what else ``save()`` and signals do outside of the database, they do twice.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from django.db import connections, router, transaction

from gm_chat.managers.deadline import guard
from gm_chat.managers.faults import translated
from gm_chat.managers.preview import check_unchanged, preview_of
from gm_chat.managers.rows import Scope
from gm_chat.managers.sight import Sight
from gm_chat.managers.visibility import Rights
from gm_chat.managers.writing import Writing

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gm_chat.managers.api import MutationCall
    from gm_chat.managers.binding import Binding
    from gm_chat.plugin import Actor

__all__ = ["execute_mutation", "preview_mutation"]


def execute_mutation(
    call: MutationCall, bindings: Mapping[str, Binding], actor: Actor, *, deadline: float | None = None
) -> dict[str, Any]:
    """Run a validated call under the actor's rights on rows; permissions are the caller's to check. Blocking.

    Returns ``{"id": ..., <each written input>: ...}`` in JSON types, relations as ids; of the project's own mutations
    what they return. Raises ``ToolError`` with ``not_found``, ``conflict``, ``permission_denied``, ``timeout`` or
    ``validation_failed`` (``fields``: messages by input).
    """
    with _within(call, bindings, actor, deadline) as (writing, scope):
        writing.lock()
        if call.expected or call.shown is not None:
            check_unchanged(writing, _sight(scope, writing))
        writing.prepare()
        return writing.apply()


def preview_mutation(
    call: MutationCall, bindings: Mapping[str, Binding], actor: Actor, *, deadline: float | None = None
) -> dict[str, Any]:
    """Tell what the call would do, in the form of :mod:`gm_chat.managers.preview`, and leave no trace. Blocking.

    Raises what :func:`execute_mutation` would. Nothing is saved where the manager says ``preview = False``, and where
    the database has no transactions.
    """
    with _within(call, bindings, actor, deadline) as (writing, scope):
        connection = connections[writing.alias]
        tried = writing.binding.preview and connection.features.supports_transactions
        preview = preview_of(writing, _sight(scope, writing), tried=tried)
        if connection.vendor == "postgresql":  # it would look at deferred constraints when it commits
            connection.check_constraints()
        transaction.set_rollback(True, using=writing.alias)
        return preview


@contextmanager
def _within(
    call: MutationCall, bindings: Mapping[str, Binding], actor: Actor, deadline: float | None
) -> Iterator[tuple[Writing, Scope]]:
    """A transaction, its deadline, and what may go wrong in words."""
    scope = Scope(bindings, actor)
    binding = bindings[call.mutation.manager]
    alias = router.db_for_write(binding.model)
    with guard(alias, deadline, read_only=False), translated(call, binding), transaction.atomic(using=alias):
        yield Writing(call, scope, alias), scope


def _sight(scope: Scope, writing: Writing) -> Sight:
    rights = Rights(scope.bindings, mutations=()).of(scope.actor)
    return Sight(scope, rights.managers, writing.alias)
