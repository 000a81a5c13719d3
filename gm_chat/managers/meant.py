"""What a mistake in a call may have been meant for: said in the error, a name as a path from its manager on.

Models mostly know what they look for and miss where it lies: the field is one relation away, the path begins with the
manager's own name, a lookup stands where only a field can, a number stands in quotes. Nothing is guessed silently: the
call is refused all the same, and what is proposed is seen by the asker. With the proposal comes the whole call as it
would be right, since a small model copies better than it mends; what is only to be shown may be left out of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import wraps
from itertools import islice
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, TypeVar, get_args

from gm_chat.managers.api import DatePart
from gm_chat.managers.spelling import match_name
from gm_chat.managers.values import WrongValueError
from gm_chat.plugin import ToolError
from gm_chat.words import singular, split_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gm_chat.managers.api import ManagerInfo, ManagerView

__all__ = ["UnknownLookupError", "UnknownManagerError", "UnknownNameError", "manager_meant", "proposing"]

P = ParamSpec("P")
Plan = TypeVar("Plan")

MOST: Final = 3
"""Proposals in one error."""

MAX_CORRECTED: Final = 1_000
"""Characters of a call that is worth showing again."""

MAX_CORRECTIONS: Final = 8
"""Unknown names in one call that are put right."""

MAX_SPELLED: Final = 80
"""Characters of a value that are compared with choices."""

_PARTS: Final = get_args(DatePart)
_DIRECTION: Final = re.compile(r"(\w+?)(?:__| )(asc|desc)(?:ending)?", re.IGNORECASE)
_DATES: Final = ("date", "datetime", "time", "when")
"""What models call a manager's date when they do not know its name."""


class UnknownLookupError(ToolError):
    """A field has no lookup of a name; ``written`` is both, and ``meant`` what may stand for it, or ``None``."""

    def __init__(self, code: str, message: str, *, written: str, meant: str | None, **details: Any) -> None:
        """Take the error as it is, and what would mend it."""
        super().__init__(code, message, **details)
        self.written = written
        self.meant = meant


class UnknownManagerError(ToolError):
    """There is no manager of a name; ``meant`` is the one that may have been meant, or ``None``."""

    def __init__(self, code: str, message: str, *, written: str, meant: str | None, **details: Any) -> None:
        """Take the error as it is, and what would mend it."""
        super().__init__(code, message if meant is None else f"{message}; did you mean {json.dumps(meant)}?", **details)
        self.written = written
        self.meant = meant


class UnknownNameError(ToolError):
    """A manager has no field or relation of a name; ``path`` is what was asked for from that manager on."""

    def __init__(self, code: str, message: str, *, manager: ManagerInfo, path: Sequence[str], **details: Any) -> None:
        """Take the error as it is without a proposal."""
        super().__init__(code, message, **details)
        self.manager = manager
        self.path = tuple(path)


_IN_FILTERS: Final = frozenset({"filters", "having"})
_MENDABLE: Final = (UnknownManagerError, UnknownNameError, UnknownLookupError, WrongValueError)


def manager_meant(name: str, view: ManagerView) -> str | None:
    """The one manager that the end of ``name`` calls by its name or an alias: ``CustomerOrderManager`` an order."""
    words = _called(name[:MAX_SPELLED])
    known = [(_called(text), manager.name) for manager in view for text in (manager.name, *manager.aliases)]
    for start in range(len(words)):
        if found := {manager for called, manager in known if called == words[start:]}:
            return found.pop() if len(found) == 1 else None
    return None


def _called(text: str) -> list[str]:
    return list(map(singular, split_words(text.removesuffix("Manager"))))


def proposing(
    build: Callable[Concatenate[Mapping[str, Any], ManagerView, P], Plan],
) -> Callable[Concatenate[Mapping[str, Any], ManagerView, P], Plan]:
    """Add to the errors of ``build(args, view)`` what may have been meant, of what the actor sees.

    If that is one thing only, and makes the call a right one, it is the error's ``corrected``.
    """

    @wraps(build)
    def proposed(args: Mapping[str, Any], view: ManagerView, /, *rest: P.args, **options: P.kwargs) -> Plan:
        def call(mended: Mapping[str, Any]) -> Plan:
            return build(mended, view, *rest, **options)

        try:
            return call(args)
        except _MENDABLE as error:
            message, details = error.message, dict(error.details)
            if isinstance(error, UnknownNameError):
                names = _meant(error.manager, error.path, view)
                fitting = (
                    name for name in names if _takes_value(name, _renamed(args, "__".join(error.path), name), call)
                )
                found = list(islice(fitting, MOST))
                message += f"; did you mean {' or '.join(map(json.dumps, found))}?" if found else ""
            right = _right(args, error, call, view)
            if right is not None and len(repr(right)) <= MAX_CORRECTED:
                details["corrected"] = right
            raise ToolError(error.code, message, **details) from error

    return proposed


def _takes_value(name: str, args: Mapping[str, Any], build: Callable[[Mapping[str, Any]], object]) -> bool:
    """Whether a field may be meant in a call that names it: one with choices of which the value spells none was not."""
    try:
        build(args)
    except WrongValueError as error:
        choices = list(map(str, error.details.get("allowed", ())))
        is_its = error.name == name or name.endswith(f"__{error.name}")
        return not (is_its and choices) or bool(get_close_matches(str(error.value)[:MAX_SPELLED], choices))
    except ToolError:
        pass
    return True


def _right(
    args: Mapping[str, Any], error: ToolError, build: Callable[[Mapping[str, Any]], object], view: ManagerView
) -> Mapping[str, Any] | None:
    """The call with each mistake mended, if it asks for the same rows then as it did, and can be built."""
    for _ in range(MAX_CORRECTIONS):
        mended = _mended(args, error, view)
        if mended is None or mended == args:
            return None
        args = mended
        try:
            build(args)
        except ToolError as other:
            error = other
        else:
            return args
    return None


def _mended(args: Mapping[str, Any], error: ToolError, view: ManagerView) -> Mapping[str, Any] | None:
    match error:
        case UnknownManagerError(written=wrong, meant=str(name)):
            return {**args, "manager": name} if args.get("manager") == wrong else None
        case UnknownNameError():
            names, wrong = list(islice(_meant(error.manager, error.path, view), MOST)), "__".join(error.path)
            if len(names) != 1:
                return _shown_instead(args, wrong, names)
            mended = _renamed(args, wrong, names[0])
            # What ends in a lookup is right in filters, and only there.
            kept = _IN_FILTERS & args.keys() if wrong.startswith(f"{names[0]}__") else ()
            return mended | {argument: args[argument] for argument in kept}
        case UnknownLookupError(meant=str(name)):
            return _renamed(args, error.written, name)
        case WrongValueError(meant=value) if value is not None:
            return _revalued(args, error)
    return None


def _shown_instead(args: Mapping[str, Any], wrong: str, names: Sequence[str]) -> dict[str, Any] | None:
    """The call with all that may be meant, or nothing, for a name that is only shown: it finds the same rows."""
    fields = args.get("fields")
    others = {argument: value for argument, value in args.items() if argument != "fields"}
    if not isinstance(fields, list) or _renamed(others, wrong, "") != others:
        return None

    def instead(field: Any) -> list[Any]:
        renamed = [_renamed({"fields": field}, wrong, name)["fields"] for name in (*names, "")]
        return [field] if renamed[-1] == field else renamed[:-1]

    if not all(isinstance(field, str) for field in fields):
        return None
    shown = dict.fromkeys(name for field in fields for name in instead(field))
    return {**args, "fields": list(shown) or ["*"]}


def _revalued(args: Mapping[str, Any], error: WrongValueError) -> dict[str, Any]:
    """The call with one value for another, under the name that the error tells."""

    def under(value: Any) -> Any:
        if isinstance(value, list):
            return list(map(under, value))
        return error.meant if type(value) is type(error.value) and value == error.value else value

    def anywhere(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {key: under(item) if is_it(str(key)) else anywhere(item) for key, item in value.items()}
        return list(map(anywhere, value)) if isinstance(value, list) else value

    def is_it(key: str) -> bool:
        return key == error.name or key.endswith(f"__{error.name}")

    return {key: under(value) if is_it(key) else anywhere(value) for key, value in args.items()}


def _renamed(args: Mapping[str, Any], wrong: str, right: str) -> dict[str, Any]:
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

    readers = {"filters": keys, "having": keys, "measures": formulas}
    return {
        argument: value if argument == "manager" else readers.get(argument, texts)(value)
        for argument, value in args.items()
    }


def _meant(manager: ManagerInfo, path: Sequence[str], view: ManagerView) -> Iterator[str]:
    name, *rest = path
    if direction := _DIRECTION.fullmatch("__".join(path)):
        yield direction[1] if direction[2].lower() == "asc" else f"-{direction[1]}"
        return
    if rest and match_name(name, _own_names(manager)) and match_name(rest[0], _members(manager)):
        yield "__".join(rest)
        return
    dates = [item.name for item in manager.fields if item.type in ("date", "datetime")]
    if match_name(name, _DATES):
        yield from ("__".join([date, *rest]) for date in dates)
        return
    if rest and match_name(name, _own_names(manager)):
        yield from _meant(manager, rest, view)
        return
    if rest and (field := match_name(name, [item.name for item in manager.fields])):
        yield field  # what follows is a lookup, which belongs into filters
        return
    targets = {relation.name: view.get(relation.target) for relation in manager.relations}
    near = [key for key, target in targets.items() if target is not None and match_name(name, _own_names(target))]
    yield from ("__".join([key, *rest]) for key in near)
    for key, target in targets.items() if not near else ():
        if target is not None and (member := match_name(name, _members(target))):
            yield "__".join([key, member, *rest])
    if part := match_name(name, _PARTS):
        yield from ("__".join([date, part, *rest]) for date in dates)


def _members(manager: ManagerInfo) -> list[str]:
    return [*(item.name for item in manager.fields), *(item.name for item in manager.relations)]


def _own_names(manager: ManagerInfo) -> list[str]:
    bare = manager.name.removesuffix("Manager")
    return [manager.name, bare, f"{bare}s"]
