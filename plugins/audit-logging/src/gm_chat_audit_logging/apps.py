"""The Django app: only for the table of the sink ``audit_database``; the sink ``audit_logging`` does without."""

from django.apps import AppConfig

__all__ = ["AuditLoggingConfig"]


class AuditLoggingConfig(AppConfig):
    """``"gm_chat_audit_logging"`` in ``INSTALLED_APPS``."""

    name = "gm_chat_audit_logging"
    verbose_name = "Chat audit"
    default_auto_field = "django.db.models.BigAutoField"
