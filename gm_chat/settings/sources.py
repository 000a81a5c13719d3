"""From several sources to one :class:`ChatSettings`: merging, unknown names, and errors that say where.

Strength grows from defaults over ``GENERAL_MANAGER["CHAT"]`` and ``GM_CHAT`` to the environment. A top-level key of
a stronger source replaces the weaker one whole, so that half of one setting never meets half of another; only the
environment merges into the winner, because one variable is one value. Whoever names a ``provider`` without a
``provider_config`` starts with an empty one: no key of one vendor reaches another.
"""

from __future__ import annotations

import json
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import ValidationError

if typing.TYPE_CHECKING:
    from pydantic_core import ErrorDetails

from gm_chat.settings.error import ChatConfigurationError, suggestion
from gm_chat.settings.model import ChatSettings, Section

__all__ = ["ENVIRONMENT", "Source", "UnknownName", "build_settings", "merge", "overlay", "unknown_at"]

ENVIRONMENT: Final = "the environment"
_SHOWN_TYPES: Final = (bool, int, float, type(None))

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Source:
    """Where settings come from. ``name`` is how a user writes it, e.g. ``GM_CHAT``.

    ``tolerant`` leaves unknown names out instead of refusing them: the real GeneralManager reads its own, newer keys
    from the same mapping. ``variables`` are the names of environment variables that were set.
    """

    name: str
    values: Mapping[str, Any] = field(repr=False)
    tolerant: bool = False
    variables: frozenset[str] = frozenset()

    def place(self, path: Sequence[Any]) -> str:
        """Name a key the way a user finds it: ``GM_CHAT["audit"]["level"]``, ``GM_CHAT_AUDIT__LEVEL``."""
        if self.name != ENVIRONMENT:
            return self.name + "".join(f"[{json.dumps(part)}]" for part in path)
        for end in range(len(path), 0, -1):  # a variable may hold a whole mapping as JSON
            name = _variable(path[:end])
            if name in self.variables:
                return name + "".join(f"[{json.dumps(part)}]" for part in path[end:])
        return f"{self.name} ({_variable(path)})"

    def unknown(self) -> list[UnknownName]:
        """Every name at any level that no setting has."""
        found: dict[Path, UnknownName] = {}
        for path in _paths(self.values):
            if (known := unknown_at(path)) is not None and known.known:
                found.setdefault(known.path, known)
        return list(found.values())


def _variable(path: Sequence[Any]) -> str:
    return "GM_CHAT_" + "__".join(map(str, path)).upper()


@dataclass(frozen=True, slots=True)
class UnknownName:
    """A path whose last part is no setting, with the names that stand there."""

    path: Path
    known: tuple[str, ...]

    @property
    def hint(self) -> str:
        """The nearest known name, as a sentence."""
        return suggestion(str(self.path[-1]), self.known) if self.known else f"{self.path[-2]!r} is a single value."


def unknown_at(path: Path) -> UnknownName | None:
    """Follow a path through the settings; ``None`` if it leads somewhere, or into a free mapping."""
    section: type[Section] = ChatSettings
    parts = iter(enumerate(path, start=1))
    for position, part in parts:
        fields = section.model_fields
        if part not in fields:
            return UnknownName(path[:position], tuple(fields))
        annotation = fields[part].annotation
        inner = typing.get_args(annotation)[-1:] or (annotation,)
        if not _is_section(inner[0]):
            return None if position == len(path) or _is_mapping(annotation) else UnknownName(path[: position + 1], ())
        if inner[0] is not annotation:
            next(parts, None)
        section = inner[0]
    return None


def build_settings(sources: Sequence[Source]) -> ChatSettings:
    """Merge ``sources``, weakest first, over the defaults and validate the result.

    Raises :class:`ChatConfigurationError` with one line per fault, each naming key and source.
    """
    refused = [
        f"{source.place(unknown.path)} is not a chat setting. {unknown.hint}"
        for source in sources
        if not source.tolerant
        for unknown in source.unknown()
    ]
    if refused:
        raise ChatConfigurationError("\n".join(refused))
    merged = merge(sources)
    try:
        return ChatSettings.model_validate(merged)
    except ValidationError as error:
        # The cause would carry every input value, secrets included: it must not survive in the traceback.
        raise ChatConfigurationError("\n".join(_explain(error, merged, sources))) from None


def merge(sources: Sequence[Source]) -> dict[str, Any]:
    """Merge ``sources``, weakest first. Nothing is validated yet."""
    merged: dict[str, Any] = {}
    for source in sources:
        values = _without_unknown(source) if source.tolerant else source.values
        merged = overlay(merged, values) if source.name == ENVIRONMENT else {**merged, **_own_config(values)}
    return merged


def overlay(weak: Mapping[str, Any], strong: Mapping[str, Any], path: Path = ()) -> dict[str, Any]:
    """Merge deeply; the chat, and a profile, that name their provider bring its configuration too."""
    result = dict(weak)
    if "provider" in strong and (not path or path[:-1] == ("provider_profiles",)):
        result["provider_config"] = {}
    for key, value in strong.items():
        below = result.get(key)
        if isinstance(below, Mapping) and isinstance(value, Mapping):
            result[key] = overlay(below, value, (*path, key))
        else:
            result[key] = value
    return result


def _own_config(values: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"provider_config": {}, **values} if "provider" in values else values


def _without_unknown(source: Source) -> Mapping[str, Any]:
    unknown = {name.path for name in source.unknown()}

    def keep(values: Mapping[str, Any], path: Path) -> dict[str, Any]:
        return {
            key: keep(value, (*path, key)) if isinstance(value, Mapping) else value
            for key, value in values.items()
            if (*path, key) not in unknown
        }

    return keep(source.values, ())


def _explain(error: ValidationError, merged: Mapping[str, Any], sources: Sequence[Source]) -> Iterator[str]:
    for fault in error.errors(include_url=False, include_input=False):
        path = fault["loc"]
        cause = fault.get("ctx", {}).get("error")
        if not path:
            yield str(cause or fault["msg"])
            continue
        yield f"{_owner(path, sources)}: {cause or _fault(fault, _at(merged, path))}"


def _owner(path: Sequence[Any], sources: Sequence[Source]) -> str:
    """Name the strongest source that sets the path, or at least its beginning."""
    setting = [source for source in reversed(sources) if path[0] in source.values]
    whole = (source for source in setting if source.name != ENVIRONMENT or _has(source.values, path))
    return next(whole, setting[0]).place(path)


def _fault(fault: ErrorDetails, value: object) -> str:
    """Say what is expected, and quote what came instead if it cannot be a secret; else only its type."""
    if fault["type"] == "missing":
        return "is required"
    expected = "must be a mapping" if fault["type"] == "model_type" else fault["msg"].replace("Input should", "must")
    got = repr(value) if isinstance(value, _SHOWN_TYPES) else f"a {type(value).__name__}"
    return f"{expected}, got {got}"


def _has(values: Any, path: Sequence[Any]) -> bool:
    return not path or (isinstance(values, Mapping) and path[0] in values and _has(values[path[0]], path[1:]))


def _at(values: Any, path: Sequence[Any]) -> Any:
    for part in path:
        match values:
            case Mapping():
                values = values.get(part)
            case list() | tuple() if isinstance(part, int) and part < len(values):
                values = values[part]
            case _:
                return values  # a set has no places: its type has to do
    return values


def _paths(values: Mapping[str, Any], above: Path = ()) -> Iterator[Path]:
    for key, value in values.items():
        yield (*above, key)
        if isinstance(value, Mapping):
            yield from _paths(value, (*above, key))


def _is_section(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, Section)


def _is_mapping(annotation: Any) -> bool:
    return typing.get_origin(annotation) is Mapping or any(map(_is_mapping, typing.get_args(annotation)))
