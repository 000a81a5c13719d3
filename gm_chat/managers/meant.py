"""What a name that a manager does not have may have been meant for: said in the error, as a path from that manager on.

Models mostly know what they look for and miss where it lies: the field is one relation away, the path begins with the
manager's own name, or a lookup stands where only a field can. Nothing is guessed silently: the call is refused all the
same, and what is proposed is seen by the asker.
"""

from __future__ import annotations

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


class UnknownNameError(ToolError):
    """A manager has no field or relation of a name; ``path`` is what was asked for from that manager on."""

    def __init__(self, code: str, message: str, *, manager: ManagerInfo, path: Sequence[str], **details: Any) -> None:
        """Take the error as it is without a proposal."""
        super().__init__(code, message, **details)
        self.manager = manager
        self.path = tuple(path)


@contextmanager
def proposals(view: ManagerView) -> Iterator[None]:
    """Add to an error about an unknown name what may have been meant, of what the actor sees."""
    try:
        yield
    except UnknownNameError as error:
        found = [f'"{path}"' for path in islice(_meant(error.manager, error.path, view), MOST)]
        if not found:
            raise
        raise ToolError(error.code, f"{error.message}; did you mean {' or '.join(found)}?", **error.details) from error


def _meant(manager: ManagerInfo, path: Sequence[str], view: ManagerView) -> Iterator[str]:
    name, *rest = path
    if rest and match_name(name, _own_names(manager)) and match_name(rest[0], _members(manager)):
        yield "__".join(rest)
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
