"""The entry point: the plugin's settings and what it offers to gm-chat."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from django.apps import apps
from django.core.exceptions import ImproperlyConfigured

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

    logger: str | None = "gm_chat.audit_log"
    level: str = "INFO"
    database: bool = False

    def __post_init__(self) -> None:
        """Refuse what ``logging`` would misunderstand or silently ignore."""
        logger: object = self.logger  # a setting may be anything
        if logger is not None and not (isinstance(logger, str) and logger.strip()):
            raise ValueError("'logger' must be the name of a Python logger, or None for no lines at all")
        if self.level not in _LEVELS:
            raise ValueError(f"'level' must be one of {', '.join(_LEVELS)}")
        if not isinstance(self.database, bool):
            raise ValueError("'database' must be True or False")


@hookimpl
def gm_chat_audit_sinks(options: Options) -> Iterator[AuditSink]:
    """Offer the sinks ``audit_logging`` and ``audit_database``, as far as the options ask for them."""
    if options.logger is not None:
        yield LoggingSink(options.logger, logging.getLevelNamesMapping()[options.level])
    if options.database:
        if not apps.is_installed("gm_chat_audit_logging"):
            raise ImproperlyConfigured(
                "'database' needs the plugin's table: add \"gm_chat_audit_logging\" to INSTALLED_APPS, "
                "then type: python manage.py migrate"
            )
        # Imported here: models can be imported only where their app is installed.
        from gm_chat_audit_logging.database import DatabaseSink

        yield DatabaseSink()
