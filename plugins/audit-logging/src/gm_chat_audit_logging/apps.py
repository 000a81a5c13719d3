"""The Django app: only for the table of the sink ``audit_database``; the sink ``audit_logging`` does without."""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig

__all__ = ["AuditLoggingConfig"]


class AuditLoggingConfig(AppConfig):
    """``"gm_chat_audit_logging"`` in ``INSTALLED_APPS``."""

    name = "gm_chat_audit_logging"
    verbose_name = "Chat audit"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Have ``chat_forget`` delete from the table, too."""
        # Imported here: importing the app's configuration must not need Django's settings.
        from gm_chat.signals import chat_forgotten

        chat_forgotten.connect(forget, dispatch_uid="gm_chat_audit_logging")


def forget(**arguments: Any) -> dict[str, int]:
    """Delete the events of an actor; see the signal ``chat_forgotten``."""
    # Imported here: the models are not loaded yet when this module is.
    from gm_chat_audit_logging.forgetting import forget_actor

    return {"audit events": forget_actor(arguments["actor"], arguments["export"], dry_run=arguments["dry_run"])}
