"""What a name that a manager does not have may have been meant for: said in the error, as a path from that manager on.

Models mostly know what they look for and miss where it lies: the field is one relation away, the path begins with the
manager's own name, or a lookup stands where only a field can. Nothing is guessed silently: the call is refused all the
same, and what is proposed is seen by the asker. With the proposal comes the whole call as it would be right, since a
small model copies better than it mends.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import wraps
from itertools import islice
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, TypeVar

from gm_chat.managers.spelling import match_name
from gm_chat.plugin import ToolError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gm_chat.managers.api import ManagerInfo, ManagerView

__all__ = ["UnknownNameError", "proposing"]

P = ParamSpec("P")
Plan = TypeVar("Plan")

MOST: Final = 3
"""Proposals in one error."""

MAX_CORRECTED: Final = 1_000
"""Characters of a call that is worth showing again."""

MAX_CORRECTIONS: Final = 8
"""Unknown names in one call that are put right."""

_DATES: Final = ("date", "datetime", "day", "month", "time", "when", "year")
"""What models call a manager's date when they do not know its name."""


class UnknownNameError(ToolError):
    """A manager has no field or relation of a name; ``path`` is what was asked for from that manager on."""

    def __init__(self, code: str, message: str, *, manager: ManagerInfo, path: Sequence[str], **details: Any) -> None:
        """Take the error as it is without a proposal."""
        super().__init__(code, message, **details)
        self.manager = manager
        self.path = tuple(path)


def proposing(
    build: Callable[Concatenate[Mapping[str, Any], ManagerView, P], Plan],
) -> Callable[Concatenate[Mapping[str, Any], ManagerView, P], Plan]:
    """Add to the errors of ``build(args, view)`` about unknown names what may have been meant, of what the actor sees.

    If that makes the call a right one, it is the error's ``corrected``.
    """

    @wraps(build)
    def proposed(args: Mapping[str, Any], view: ManagerView, *rest: P.args, **options: P.kwargs) -> Plan:
        try:
            return build(args, view, *rest, **options)
        except UnknownNameError as error:
            found = list(islice(_meant(error.manager, error.path, view), MOST))
            if not found:
                raise
            message = f"{error.message}; did you mean {' or '.join(map(json.dumps, found))}?"
            details = dict(error.details)
            corrected = _right(args, error, lambda call: build(call, view, *rest, **options), view)
            if corrected is not None and len(repr(corrected)) <= MAX_CORRECTED:
                details["corrected"] = corrected
            raise ToolError(error.code, message, **details) from error

    return proposed


def _right(
    args: Mapping[str, Any], error: UnknownNameError, build: Callable[[Mapping[str, Any]], object], view: ManagerView
) -> Mapping[str, Any] | None:
    """The call with each unknown name for the first that may have been meant, if it can be built then."""
    for _ in range(MAX_CORRECTIONS):
        name = next(_meant(error.manager, error.path, view), None)
        if name is None:
            return None
        args = _corrected(args, "__".join(error.path), name)
        try:
            build(args)
        except UnknownNameError as other:
            error = other
        except ToolError:
            return None
        else:
            return args
    return None


def _corrected(args: Mapping[str, Any], wrong: str, right: str) -> dict[str, Any]:
    """The call with one name for another, wherever a name can stand: values of filters stay what they are."""
    name = re.compile(rf"(?:(?<=__)|(?<!\w)){re.escape(wrong)}(?=__|\W|$)")

    def keys(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {name.sub(right, str(key)): keys(item) for key, item in value.items()}
        return list(map(keys, value)) if isinstance(value, list | tuple) else value

    def texts(value: Any) -> Any:
        if isinstance(value, list | tuple):
            return list(map(texts, value))
        if isinstance(value, Mapping):
            return {key: item if key == "where" else texts(item) for key, item in keys(value).items()}
        return name.sub(right, value) if isinstance(value, str) else value

    def formulas(value: Any) -> Any:
        return {key: texts(item) for key, item in value.items()} if isinstance(value, Mapping) else texts(value)

    readers = {"filters": keys, "having": keys, "measures": formulas, "manager": lambda value: value}
    return {argument: readers.get(argument, texts)(value) for argument, value in args.items()}


def _meant(manager: ManagerInfo, path: Sequence[str], view: ManagerView) -> Iterator[str]:
    name, *rest = path
    if rest and match_name(name, _own_names(manager)) and match_name(rest[0], _members(manager)):
        yield "__".join(rest)
        return
    if match_name(name, _DATES):
        yield from ("__".join([item.name, *rest]) for item in manager.fields if item.type in ("date", "datetime"))
        return
    if rest and (field := match_name(name, [item.name for item in manager.fields])):
        yield field  # what follows is a lookup, which belongs into filters
        return
    for relation in manager.relations:
        target = view.get(relation.target)
        if target is None:
            continue
        if match_name(name, _own_names(target)):
            yield "__".join([relation.name, *rest])
        elif member := match_name(name, _members(target)):
            yield "__".join([relation.name, member, *rest])


def _members(manager: ManagerInfo) -> list[str]:
    return [*(item.name for item in manager.fields), *(item.name for item in manager.relations)]


def _own_names(manager: ManagerInfo) -> list[str]:
    bare = manager.name.removesuffix("Manager")
    return [manager.name, bare, f"{bare}s"]
