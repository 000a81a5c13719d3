"""The catalog: a project's own words for its managers, which tell apart what names and descriptions do not.

It maps a manager to its domain, the names that people call it by, when to use it, and what it is easily mistaken for::

    {"PartManager": {"domain": "manufacturing", "aliases": ["part", "component"],
                     "use_when": "The question concerns designed or purchased components.",
                     "distinguish_from": ["MaterialManager"]}}

A catalog ranks and explains. It shows nobody a manager, field or row. (Specification: "Planned settings and catalog".)
"""

from __future__ import annotations

import hashlib
import inspect
import json
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Self

from gm_chat.settings import ChatConfigurationError, canonical_path, import_callable, suggestion
from gm_chat.words import split_words

if TYPE_CHECKING:
    from collections.abc import Container

__all__ = [
    "CatalogError",
    "ManagerCatalog",
    "ManagerCatalogEntry",
    "load_manager_catalog",
    "normalize_match_text",
    "read_catalog",
]


class CatalogError(ValueError):
    """A catalog cannot be used; the message names the entry and the key, and is meant for the operator."""


def normalize_match_text(value: str) -> str:
    """Write any text as words in one case, with a blank between them: ``"PartManager"`` -> ``"part manager"``."""
    return " ".join(word.casefold() for word in split_words(unicodedata.normalize("NFKC", value)))


@dataclass(frozen=True, slots=True)
class ManagerCatalogEntry:
    """What a catalog says of one manager. Aliases are normalized; they and ``distinguish_from`` are sorted."""

    domain: str
    aliases: tuple[str, ...]
    use_when: str
    distinguish_from: tuple[str, ...]

    @classmethod
    def parse(cls, manager: str, value: object, known: Container[str] | None = None) -> Self:
        """Check one entry as it is written; raises :class:`CatalogError`. A key that means nothing is ignored.

        ``known`` are the managers that there are; ``None`` lets ``distinguish_from`` name any.
        """
        if not isinstance(value, Mapping):
            raise CatalogError(f"{manager!r} must be a mapping with {_KEYS}, not a {type(value).__name__}")
        if missing := [repr(key) for key in _FIELDS if key not in value]:
            surplus = [f"{key!r:.80}" for key in value if key not in _FIELDS]
            unknown = f" ({', '.join(surplus)} means nothing)" if surplus else ""
            raise CatalogError(f"{manager!r} lacks {', '.join(missing)}{unknown}")
        targets = _texts(manager, "distinguish_from", value["distinguish_from"])
        for target in targets:
            if target == manager:
                raise CatalogError(f"{manager!r}: 'distinguish_from' names {manager!r} itself")
            if known is not None and target not in known:
                raise CatalogError(f"{manager!r}: 'distinguish_from' names {target!r:.80}, which is no exposed manager")
        return cls(
            domain=_text(manager, "'domain'", value["domain"]),
            aliases=tuple(sorted({_alias(manager, item) for item in _texts(manager, "aliases", value["aliases"])})),
            use_when=_text(manager, "'use_when'", value["use_when"]),
            distinguish_from=tuple(sorted(set(targets))),
        )


_FIELDS: Final = tuple(field.name for field in fields(ManagerCatalogEntry))
_KEYS: Final = f"{', '.join(map(repr, _FIELDS[:-1]))} and {_FIELDS[-1]!r}"


@dataclass(frozen=True, slots=True)
class ManagerCatalog:
    """Entries by manager, sorted and immutable. ``fingerprint`` is the SHA-256 of what they say, in hex."""

    entries: Mapping[str, ManagerCatalogEntry]
    fingerprint: str

    @classmethod
    def of(cls, entries: Mapping[str, ManagerCatalogEntry]) -> Self:
        """The catalog of these entries; equal ones have equal fingerprints, in whatever order they come."""
        ordered = {name: entries[name] for name in sorted(entries)}
        canonical = json.dumps({name: asdict(entry) for name, entry in ordered.items()}, sort_keys=True)
        return cls(MappingProxyType(ordered), hashlib.sha256(canonical.encode()).hexdigest())


def load_manager_catalog(source: object, schema_index: Mapping[str, Any]) -> ManagerCatalog:
    """Load a catalog from ``None``, a mapping, a callable without arguments, or the dotted path of one.

    Only the names in ``schema_index`` matter: an entry for any other manager, one that is malformed, and a source
    that cannot be loaded raise :class:`~gm_chat.settings.ChatConfigurationError`, which names entry and key.
    """
    try:
        raw = read_catalog(source)
        for name in raw:
            if name not in schema_index:
                raise CatalogError(f"{name!r:.80} is no exposed manager. {suggestion(name, schema_index)}")
        return ManagerCatalog.of({name: ManagerCatalogEntry.parse(name, raw[name], schema_index) for name in raw})
    except CatalogError as error:
        detail = f"planned['catalog']: {error}".removesuffix(".")
        raise ChatConfigurationError.invalid_planned_settings(f"{detail}.") from error


def read_catalog(source: object) -> Mapping[str, object]:
    """Get at the entries as they are written, from any kind of source; raises :class:`CatalogError`."""
    if source is None:
        return {}
    entries = source if isinstance(source, Mapping) else _called(source)
    if not isinstance(entries, Mapping):
        raise CatalogError(f"it gave a {type(entries).__name__}; it must give a mapping of manager names to entries")
    for name in entries:
        if not isinstance(name, str) or not name.strip():
            raise CatalogError(f"its key {name!r:.80} is no manager's name")
    return entries


def _called(source: object) -> object:
    if not isinstance(source, str) and not callable(source):
        raise CatalogError(f"a {type(source).__name__} is neither a mapping, nor a callable, nor the path of one")
    path = canonical_path(source) if isinstance(source, str) else source
    function: Callable[..., Any] = import_callable(path, setting="planned.catalog")
    if inspect.iscoroutinefunction(function):
        raise CatalogError("it is an async function; write a plain def")
    try:
        return function()
    except (CatalogError, ChatConfigurationError):
        raise
    except (Exception, SystemExit) as error:  # a project's function may raise anything
        raise CatalogError(f"it raised {type(error).__name__}: {error}") from error


def _texts(manager: str, key: str, value: object) -> list[str]:
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise CatalogError(f"{manager!r}: {key!r} must be a list of texts, not a {type(value).__name__}")
    return [_text(manager, f"each of {key!r}", item) for item in value]


def _text(manager: str, what: str, value: object) -> str:
    if not isinstance(value, str):
        raise CatalogError(f"{manager!r}: {what} must be text, not a {type(value).__name__}")
    if not value.strip():
        raise CatalogError(f"{manager!r}: {what} must say something, and is empty")
    return value.strip()


def _alias(manager: str, value: str) -> str:
    normalized = normalize_match_text(value)
    if not normalized:
        raise CatalogError(f"{manager!r}: the alias {value!r:.80} has neither letters nor digits")
    return normalized
