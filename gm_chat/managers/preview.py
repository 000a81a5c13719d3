"""What a mutation would do, in JSON types, and whether the data is still as it was when that was told.

::

    {"action": "update", "manager": "PartManager", "tried": true, "row": {"id": 7, "label": "Bolt M8"},
     "changes": [{"field": "status", "old": "draft", "old_label": "In design",
                  "new": "released", "new_label": "Released"},
                 {"field": "material", "old": 3, "old_label": "Steel", "new": 4, "new_label": "Brass"}]}

``changes`` holds the values of what is created (``new``), changed or deleted (``old``), as the actor may see them.
``arguments`` are the inputs of a mutation of the project's own, ``also_deleted`` says how many visible rows of other
managers go along. Without ``tried`` nothing of it was run, and what saving would add is not known.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from django.db.models import Q
from django.db.models.deletion import Collector

from gm_chat.encoding import jsonable, to_json
from gm_chat.managers.sight import MAX_NAMES, Seen, Sight, brief, label_of
from gm_chat.managers.spelling import shown
from gm_chat.plugin import ToolError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from django.db.models import Model

    from gm_chat.managers.writing import Writing

__all__ = ["check_unchanged", "preview_of"]

_AT_ONCE: Final = 500
_WORDS: Final = 80
_EMPTY: Final[tuple[Any, ...]] = (None, "", [], {})
_NOTHING: Final[Mapping[str, Seen]] = {}


def preview_of(writing: Writing, sight: Sight, *, tried: bool) -> dict[str, Any]:
    """Go through the steps of a call and tell what came of it. The caller rolls back.

    Unless it is to be ``tried``, everything but the last step is taken. Raises what the call would raise.
    """
    writing.lock()
    check_unchanged(writing, sight)
    manager, kind = writing.binding.info.name, writing.call.mutation.kind
    lists = {name for name in writing.values if kind != "custom" and writing.inputs[name].many}
    before = sight.of_row(manager, writing.key, many=lists) or _NOTHING if writing.has_target else _NOTHING
    writing.prepare()
    preview: dict[str, Any] = {"action": kind, "manager": manager, "tried": tried}
    if writing.has_target:
        preview["row"] = {"id": brief(writing.key), **_labelled("label", sight.call(manager, before))}
    if kind == "custom":
        preview["arguments"] = [_argument(name, writing, sight) for name in writing.values]
    if kind == "delete":
        preview["also_deleted"] = _dependents(writing.row, sight)
    if tried:
        writing.apply()
        key = writing.key if writing.has_target else getattr(writing.row, "pk", None)
        after = _NOTHING if key is None else sight.of_row(manager, key, many=lists) or _NOTHING
    else:
        after = _NOTHING if kind == "delete" else {**before, **_intended(writing, sight)}
    preview["changes"] = list(_changes(writing, sight, before, after))
    return preview


def check_unchanged(writing: Writing, sight: Sight) -> None:
    """Raise ``ToolError("conflict")`` if the locked row is not as the call expects it, or as its preview showed it."""
    call, manager = writing.call, writing.binding.info.name
    showed = call.shown or {}
    old = {item["field"]: item["old"] for item in showed.get("changes", ()) if "old" in item}
    conflicts: dict[str, Any] = {}
    if call.expected or old:
        relations = writing.binding.relations
        lists = {name for name in old if name in relations and relations[name].kind == "to_many"}
        seen = sight.of_row(manager, writing.key, many=lists & set(sight.names(manager))) or _NOTHING
        for name, value in call.expected.items():
            if name not in seen or not _is_same(seen[name].raw, value):
                conflicts[name] = _conflict(value, seen.get(name))
        for name, value in old.items():
            if name not in seen or seen[name].value != value:
                conflicts[name] = _conflict(value, seen.get(name))
    if "also_deleted" in showed:
        dependents = _dependents(writing.row, sight)
        if dependents != showed["also_deleted"]:
            conflicts["also_deleted"] = {"expected": showed["also_deleted"], "current": dependents}
    if conflicts:
        raise _changed(writing, conflicts)


def _is_same(current: Any, expected: Any) -> bool:
    """By value, so that 9.9 is 9.90; bytes come in several types."""
    return bool(current == expected) or jsonable(current) == jsonable(expected)


def _conflict(expected: Any, seen: Seen | None) -> dict[str, Any]:
    """The current value only where the actor sees it."""
    return {"expected": brief(expected)} | ({} if seen is None else {"current": seen.value})


def _changed(writing: Writing, conflicts: Mapping[str, Any]) -> ToolError:
    parts = []
    for name, item in conflicts.items():
        now = f"is {_words(item['current'])}, not" if "current" in item else "is not"
        parts.append(f"{name} {now} {_words(item['expected'])}")
    what = f"{writing.binding.info.name} {shown(jsonable(writing.key))}"
    message = f"nothing was done, as {what} is not as expected: {'; '.join(parts)}"
    return ToolError("conflict", message, fields=dict(conflicts))


def _words(value: Any) -> str:
    text = to_json(value)
    return text if len(text) <= _WORDS else f"{text[:_WORDS]}..."


# --- what a preview tells ---------------------------------------------------------------------------------------


def _changes(
    writing: Writing, sight: Sight, before: Mapping[str, Seen], after: Mapping[str, Seen]
) -> Iterator[dict[str, Any]]:
    """Of a new row what is not empty, of a deleted one everything, else what was asked for and what came of it."""
    call, kind = writing.call, writing.call.mutation.kind
    asked = {*call.expected, *(writing.values if kind == "update" else ())}
    unsaid = _unsaid(writing)
    for name in sight.names(writing.binding.info.name):
        old, new = before.get(name), after.get(name)
        if (old is None and new is None) or (name in unsaid and name not in asked):
            continue
        match kind:
            case "create":
                is_told = new is not None and new.value not in _EMPTY
            case "delete":
                is_told = True
            case _:
                is_told = name in asked or old is None or new is None or old.value != new.value
        if is_told:
            yield {"field": name, **_told("old", old), **_told("new", new)}


def _unsaid(writing: Writing) -> set[str]:
    """The key, which ``row`` tells, and moments of saving, which are others when it counts."""
    binding, kind = writing.binding, writing.call.mutation.kind
    unsaid = set()
    for item in binding.info.fields:
        if item.key:
            if not (kind == "create" and item.name in writing.values):
                unsaid.add(item.name)
        elif item.name in binding.columns and kind != "delete":
            source: Any = binding.model._meta.get_field(binding.columns[item.name])
            if getattr(source, "auto_now", False) or getattr(source, "auto_now_add", False):
                unsaid.add(item.name)
    return unsaid


def _told(when: str, seen: Seen | None) -> dict[str, Any]:
    return {} if seen is None else {when: seen.value, **_labelled(f"{when}_label", seen.label)}


def _labelled(name: str, label: Any) -> dict[str, Any]:
    return {} if label is None else {name: label}


def _intended(writing: Writing, sight: Sight) -> dict[str, Seen]:
    """What the inputs make of the row, as far as that is known without saving it."""
    if writing.call.mutation.kind == "custom":
        return {}
    intended = {}
    for name, value in writing.values.items():
        item = writing.inputs[name]
        if item.relation:
            intended[name] = Seen(None, brief(value), _called(name, writing, sight))
        else:
            cleaned = getattr(writing.row, writing.binding.columns[name])
            intended[name] = Seen(cleaned, brief(cleaned), label_of(cleaned, item.choices))
    return intended


def _argument(name: str, writing: Writing, sight: Sight) -> dict[str, Any]:
    """An input of a mutation of the project's own."""
    value, item = writing.values[name], writing.inputs[name]
    if item.relation:
        label = _called(name, writing, sight)
    elif item.many and value:
        labels = [label_of(each, item.choices) for each in value]
        label = labels if any(labels) else None
    else:
        label = label_of(value, item.choices)
    return {"name": name, "value": brief(value), **_labelled("label", label)}


def _called(name: str, writing: Writing, sight: Sight) -> Any:
    """The name of the row that an input refers to, or the names of the first rows."""
    item, rows = writing.inputs[name], writing.related.get(name, [])
    names = [sight.name_of(str(item.relation), row) for row in rows[:MAX_NAMES]]
    if item.many:
        return names if any(names) else None
    return names[0] if names else None


# --- what goes along with a deleted row -------------------------------------------------------------------------


def _dependents(row: Any, sight: Sight) -> list[dict[str, Any]]:
    """How many rows of each manager a deletion takes along, of those that the actor sees."""
    collector = Collector(using=sight.alias, origin=row)
    collector.collect([row])
    counts: Counter[str] = Counter()
    for model, instances in collector.data.items():
        keys = [item.pk for item in instances if not (item.pk == row.pk and isinstance(row, model))]
        for first in range(0, len(keys), _AT_ONCE):
            _count(model, Q(pk__in=keys[first : first + _AT_ONCE]), sight, counts)
    fast: dict[type[Model], Q] = {}
    for rows in collector.fast_deletes:
        fast[rows.model] = fast.get(rows.model, Q()) | Q(pk__in=rows.values("pk"))
    for model, condition in fast.items():
        _count(model, condition, sight, counts)
    return [{"manager": name, "rows": count} for name, count in sorted(counts.items()) if count]


def _count(model: type[Model], condition: Q, sight: Sight, counts: Counter[str]) -> None:
    manager = _shown_as(model, sight)
    if manager is not None:
        counts[manager] += sight.scope.rows(manager).using(sight.alias).filter(condition).count()


def _shown_as(model: type[Model], sight: Sight) -> str | None:
    """The manager under which the actor knows rows of the model."""
    usual = f"{model.__name__}Manager"
    names = [
        name
        for name, binding in sight.scope.bindings.items()
        if name in sight.rights and binding.model._meta.concrete_model is model._meta.concrete_model
    ]
    return usual if usual in names else min(names, default=None)
