"""Filter values that are no constants: another field of the row, ``{"field": "due_on"}`` or
``{"field": "user__created_at", "plus": "1 year"}``.

The other field stands in the same row, or behind relations that lead to one row each. Inside a relation's conditions,
``{"outer": "due_on"}`` is a field of the row that the filters are about, not of the related one. Numbers compare with
numbers, texts with texts, dates and moments with each other, by the day. The parts year, month and day compare with the
same part (``{"created_at__month": {"field": "paid_at__month"}}``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, cast

from gm_chat.managers.api import FieldReference
from gm_chat.managers.resolve import sortable_fields, split_path, to_one_path
from gm_chat.managers.spelling import match_name, shown
from gm_chat.plugin import ToolError

if TYPE_CHECKING:
    from gm_chat.managers.api import FieldInfo, ManagerInfo, ManagerView, Path

__all__ = ["is_reference", "read_reference"]

_LOOKUPS: Final = ("exact", "gt", "gte", "lt", "lte", "year", "month", "day")
_PARTS: Final = frozenset({"year", "month", "day"})
_DATES: Final = frozenset({"date", "datetime"})
_NUMBERS: Final = frozenset({"integer", "number", "decimal"})
MAX_DAYS: Final = 36_500
_MOST: Final[Mapping[str, int]] = {"year": 100, "month": 1_200, "second": 86_400 * 100}
_PLUS: Final = re.compile(r"([+-]?)\s*(\d{1,6})\s*(second|minute|hour|day|week|month|quarter|year)s?")


def is_reference(value: Any) -> bool:
    """Whether a filter's value names another field."""
    return isinstance(value, Mapping) and any({key} <= value.keys() <= {key, "plus"} for key in ("field", "outer"))


def read_reference(
    value: Mapping[str, Any],
    field: FieldInfo,
    lookup: str,
    scopes: tuple[ManagerInfo, ManagerInfo],
    view: ManagerView,
    *,
    depth: int,
) -> FieldReference:
    """Validate what ``field`` is compared with; every mistake is a ``ToolError``.

    ``scopes`` are the manager of the row that the condition stands in, and that of the row that all filters are about.
    """
    (manager, root), outer = scopes, "outer" in value
    what = f"{field.name!r} compared with a field"
    if lookup not in _LOOKUPS:
        raise ToolError("unknown_lookup", f"{what}: {lookup!r} cannot be asked of two fields", allowed=list(_LOOKUPS))
    text, part = value["outer" if outer else "field"], None
    if not isinstance(text, str):
        raise ToolError("invalid_value", f'{what}: expected {{"field": "name"}}, got {shown(text)}')
    if lookup in _PARTS:
        *rest, last = split_path(text, what)
        if last.lower() != lookup or not rest:
            raise ToolError("invalid_value", f"{what}: {lookup} compares with a {lookup}", allowed=f"{text}__{lookup}")
        text, part = "__".join(rest), cast("Any", lookup)
    if outer:
        path, other = to_one_path(text, root, view, depth=0, what=what)
    else:
        path, other = _path(text, manager, root, view, depth, what)
    if not _are_comparable(field, other) or (part is not None and other.type not in _DATES):
        raise ToolError("invalid_value", f"{what}: a {field.type} cannot be compared with the {other.type} {text!r}")
    return FieldReference(path, other.type, part, _plus(value.get("plus"), other, what), outer)


def _path(
    text: str, manager: ManagerInfo, root: ManagerInfo, view: ManagerView, depth: int, what: str
) -> tuple[Path, FieldInfo]:
    try:
        return to_one_path(text, manager, view, depth=depth, what=what)
    except ToolError as error:
        if error.code == "unknown_field" and root is not manager and match_name(text, sortable_fields(root)):
            hint = f'; for that of {root.name} write {{"outer": {text!r}}}'.replace("'", '"')
            raise ToolError(error.code, error.message + hint, **error.details) from None
        raise


def _are_comparable(field: FieldInfo, other: FieldInfo) -> bool:
    return any({field.type, other.type} <= kinds for kinds in (_DATES, _NUMBERS)) or field.type == other.type


def _plus(value: Any, other: FieldInfo, what: str) -> tuple[int, str] | None:
    if value is None:
        return None
    found = _PLUS.fullmatch(value.strip().lower()) if isinstance(value, str) else None
    if found is None or other.type not in _DATES:
        raise ToolError(
            "invalid_value",
            f'{what}: plus takes a time such as "1 year" or "-30 days", and goes with a date; got {shown(value)}',
        )
    sign, count, unit = found.groups()
    if other.type == "date" and unit in ("second", "minute", "hour"):
        raise ToolError("invalid_value", f"{what}: a date moves by days, weeks, months, quarters or years, not {unit}s")
    factor, unit = {"week": (7, "day"), "quarter": (3, "month")}.get(unit, (1, unit))
    if int(count) * factor > _MOST.get(unit, MAX_DAYS):
        raise ToolError("invalid_value", f"{what}: plus takes at most {MAX_DAYS // 365} years, got {shown(value)}")
    return (-1 if sign == "-" else 1) * int(count) * factor, unit
