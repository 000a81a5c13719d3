"""The entry point: the plugin's settings and what it offers to gm-chat."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gm_chat.plugin import AuditSink, hookimpl
from gm_chat_audit_logging.sink import LoggingSink

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["GM_CHAT_CONTRACT", "Options", "gm_chat_audit_sinks"]

GM_CHAT_CONTRACT: Final = 1
_LEVELS: Final = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")


@dataclass(frozen=True, kw_only=True)
class Options:
    """The settings under ``plugins["audit_logging"]``."""

    logger: str = "gm_chat.audit_log"
    level: str = "INFO"

    def __post_init__(self) -> None:
        """Refuse what ``logging`` would misunderstand or silently ignore."""
        logger: object = self.logger  # a setting may be anything
        if not isinstance(logger, str) or not logger.strip():
            raise ValueError("'logger' must be the name of a Python logger")
        if self.level not in _LEVELS:
            raise ValueError(f"'level' must be one of {', '.join(_LEVELS)}")


@hookimpl
def gm_chat_audit_sinks(options: Options) -> Iterator[AuditSink]:
    """Offer the sink ``audit_logging``."""
    yield LoggingSink(options.logger, logging.getLevelNamesMapping()[options.level])
