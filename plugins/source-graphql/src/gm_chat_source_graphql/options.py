"""The settings under ``GM_CHAT["plugins"]["graphql"]``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, ConfigDict, Field
from pydantic.dataclasses import dataclass

__all__ = ["EVERYTHING", "ManagerOptions", "Options"]

EVERYTHING: Final = "*"
_CONFIG: Final = ConfigDict(extra="forbid", hide_input_in_errors=True)
_DOTTED: Final = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)+")


def _named(empty: Any) -> BeforeValidator:
    """A list of names as a mapping, each with ``empty``; one text is a list of one."""

    def normal(value: Any) -> Any:
        names = [value] if isinstance(value, str) else value
        return names if isinstance(names, Mapping) else dict.fromkeys(names, empty)

    return BeforeValidator(normal)


def _dotted(value: Any) -> Any:
    if value is not None and not (isinstance(value, str) and _DOTTED.fullmatch(value)):
        raise ValueError('expected a dotted path such as "shop.schema.schema"')
    return value


DottedPath = Annotated[str, BeforeValidator(_dotted)]


@dataclass(frozen=True, kw_only=True, config=_CONFIG)
class ManagerOptions:
    """One exposed list of the schema. ``fields`` names its fields and relations (``None``: all but likely secrets)."""

    name: str | None = None
    description: str | None = None
    aliases: tuple[str, ...] = ()
    fields: tuple[str, ...] | None = None
    public: bool = False


@dataclass(frozen=True, kw_only=True, config=_CONFIG)
class Options:
    """``managers`` maps list fields of the query type to what is special about them; ``"*"`` stands for all others.

    ``mutations`` maps mutation fields to the manager that each belongs to, ``None`` where that follows from the schema.
    ``max_rows`` bounds what is read to filter, sort and count in Python, ``page_size`` one request.
    """

    schema: DottedPath | None = None
    context: DottedPath | None = None
    managers: Annotated[dict[str, ManagerOptions], _named({})] = Field(default_factory=dict)
    mutations: Annotated[dict[str, str | None], _named(None)] = Field(default_factory=dict)
    max_rows: int = Field(2_000, ge=1, le=100_000)
    page_size: int = Field(100, ge=2, le=10_000)

    def __post_init__(self) -> None:
        """A schema of which nothing is exposed is a mistake."""
        if self.schema is not None and not self.managers:
            raise ValueError('\'managers\' must name the lists to show, e.g. ["parts"]; "*" shows all of them')
        if self.schema is None and (self.managers or self.mutations):
            raise ValueError("'schema' is missing: the dotted path of the GraphQL schema")
