"""The settings under ``GM_CHAT["plugins"]["general_manager"]``."""

from __future__ import annotations

from typing import Final

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

__all__ = ["ManagerOptions", "Options"]

_CONFIG: Final = ConfigDict(extra="forbid", hide_input_in_errors=True)


@dataclass(frozen=True, kw_only=True, config=_CONFIG)
class ManagerOptions:
    """What is special about one manager. ``fields`` names what is shown (``None``: all but likely secrets)."""

    description: str | None = None
    aliases: tuple[str, ...] = ()
    fields: tuple[str, ...] | None = None


@dataclass(frozen=True, kw_only=True, config=_CONFIG)
class Options:
    """``managers`` has details of managers, by class name; which are shown is for their ``chat_exposed`` to say.

    ``max_rows`` bounds the rows of one manager that are judged, filtered or sorted one by one.
    """

    managers: dict[str, ManagerOptions] = Field(default_factory=dict)
    max_rows: int = Field(5_000, ge=1, le=100_000)
