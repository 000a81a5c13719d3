"""Counting what actors use, in the chat's own database: one conditional UPDATE for each budget that is charged.

Windows are fixed. A budget has one row, whatever the number of its windows: the first charge of a new window begins at
zero in the same statement. A clock that steps back, or runs behind another server's, counts on in the newest window.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from django.db.models import Case, F, Q, Value, When
from django.db.models.functions import Greatest

from gm_chat.models import ChatRateCount
from gm_chat.persistence.database import chat_database, transact
from gm_chat.plugin.charges import Charge, Standing, Tally

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from django.db.models import QuerySet

__all__ = ["correct", "prune_counts", "take"]


class _Refused(Exception):  # noqa: N818 - it rolls back
    """A budget is used up."""


def take(charges: Sequence[Charge], seconds: int, now: float) -> Tally:
    """See :meth:`gm_chat.plugin.RateLimitStore.take`. Two statements for one budget; for more, in a transaction."""
    # In one order everywhere: those who wait for each other's rows never do so crosswise.
    charged = sorted((item for item in charges if item.amount), key=lambda item: item.key)
    work = partial(_take, charges, charged, seconds, now)
    try:
        return work(chat_database()) if len(charged) < 2 else transact(work)
    except _Refused:
        used = _read(chat_database(), charges, seconds, now)
        return _tally(charges, used, seconds, now, granted=False)


def correct(charges: Sequence[Charge], seconds: int, now: float, at: float) -> Tally:
    """See :meth:`gm_chat.plugin.RateLimitStore.correct`."""
    changed = sorted(charges, key=lambda item: item.key)

    def change(alias: str) -> Tally:
        for item in changed:
            row = _row(alias, item, seconds).filter(window_ends=_end(at, seconds))
            row.update(used=Greatest(F("used") + item.amount, Value(0)))
        return _tally(charges, _read(alias, charges, seconds, now), seconds, now, granted=True)

    return change(chat_database()) if len(changed) < 2 else transact(change)


def prune_counts(now: float) -> int:
    """Delete what counts in no window any more."""
    return ChatRateCount.objects.using(chat_database()).filter(window_ends__lte=int(now)).delete()[0]


def _take(charges: Sequence[Charge], charged: Sequence[Charge], seconds: int, now: float, alias: str) -> Tally:
    for item in charged:
        if not _add(alias, item, seconds, now):
            raise _Refused
    used = _read(alias, charges, seconds, now)
    if any(used[item.key] >= item.limit for item in charges if not item.amount):
        if len(charged) == 1:  # not in a transaction
            _row(alias, charged[0], seconds).update(used=Greatest(F("used") - charged[0].amount, Value(0)))
        raise _Refused
    return _tally(charges, used, seconds, now, granted=True)


def _add(alias: str, item: Charge, seconds: int, now: float) -> bool:
    """Charge a budget if anything is left of it."""
    end = _end(now, seconds)
    rows = _row(alias, item, seconds)
    is_over = Q(window_ends__lt=end)
    # In this order: MariaDB computes each value from those that it has set before.
    charge = {
        "used": Case(When(is_over, then=Value(item.amount)), default=F("used") + item.amount),
        "window_ends": Greatest(F("window_ends"), Value(end)),
    }
    while not rows.filter(is_over | Q(used__lt=item.limit)).update(**charge):
        if rows.exists():
            return False
        first = ChatRateCount(key=_name(item, seconds), window_ends=end, used=0)
        ChatRateCount.objects.using(alias).bulk_create([first], ignore_conflicts=True)
    return True


def _read(alias: str, charges: Sequence[Charge], seconds: int, now: float) -> Mapping[str, int]:
    """What counts under each key now."""
    names = {_name(item, seconds): item.key for item in charges}
    rows = ChatRateCount.objects.using(alias).filter(pk__in=names, window_ends__gte=_end(now, seconds))
    found = {names[name]: used for name, used in rows.values_list("pk", "used")}
    return {item.key: found.get(item.key, 0) for item in charges}


def _tally(charges: Sequence[Charge], used: Mapping[str, int], seconds: int, now: float, *, granted: bool) -> Tally:
    left = _end(now, seconds) - now
    return Tally(granted, tuple(Standing(used[item.key], left if used[item.key] else 0.0) for item in charges), now)


def _row(alias: str, item: Charge, seconds: int) -> QuerySet[ChatRateCount]:
    return ChatRateCount.objects.using(alias).filter(pk=_name(item, seconds))


def _name(item: Charge, seconds: int) -> str:
    return f"{seconds}:{item.key}"


def _end(now: float, seconds: int) -> int:
    return (int(now // seconds) + 1) * seconds
