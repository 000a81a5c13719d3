"""The demo's data as a Django app."""

from django.apps import AppConfig

__all__ = ["DemoConfig"]


class DemoConfig(AppConfig):
    """Parts, projects and orders of a machine builder."""

    name = "gm_chat.demo"
    label = "workshop"
    verbose_name = "Machine builder"
    default_auto_field = "django.db.models.BigAutoField"
