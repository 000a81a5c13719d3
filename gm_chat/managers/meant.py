"""What a name that a manager does not have may have been meant for: said in the error, as a path from that manager on.

Models mostly know what they look for and miss where it lies: the field is one relation away, the path begins with the
manager's own name, or a lookup stands where only a field can. Nothing is guessed silently: the call is refused all the
same, and what is proposed is seen by the asker. With the proposal comes the whole call as it then reads, since a small
model copies better than it mends.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from gm_chat.managers.spelling import match_name
from gm_chat.plugin import ToolError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gm_chat.managers.api import ManagerInfo, ManagerView

__all__ = ["UnknownNameError", "proposals"]

MOST: Final = 3
"""Proposals in one error."""

MAX_CORRECTED: Final = 1_000
"""Characters of a call that is worth showing again."""

_DATES: Final = ("date", "datetime", "day", "month", "time", "when", "year")
"""What models call a manager's date when they do not know its name."""


class UnknownNameError(ToolError):
    """A manager has no field or relation of a name; ``path`` is what was asked for from that manager on."""

    def __init__(self, code: str, message: str, *, manager: ManagerInfo, path: Sequence[str], **details: Any) -> None:
        """Take the error as it is without a proposal."""
        super().__init__(code, message, **details)
        self.manager = manager
        self.path = tuple(path)


@contextmanager
def proposals(view: ManagerView, args: Mapping[str, Any]) -> Iterator[None]:
    """Add to an error about an unknown name in a call's ``args`` what may have been meant, of what the actor sees.

    The first proposal is put in its place in a copy of the arguments, as the error's ``corrected``.
    """
    try:
        yield
    except UnknownNameError as error:
        found = list(islice(_meant(error.manager, error.path, view), MOST))
        if not found:
            raise
        message = f"{error.message}; did you mean {' or '.join(map(json.dumps, found))}?"
        details = dict(error.details)
        corrected = _corrected(args, "__".join(error.path), found[0])
        if corrected != args and len(repr(corrected)) <= MAX_CORRECTED:
            details["corrected"] = corrected
        raise ToolError(error.code, message, **details) from error


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
