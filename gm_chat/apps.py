"""The Django app. Being ready costs nothing: settings, plugins, schema and routes are read on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.apps import AppConfig
from django.core.checks import register
from django.db.models.signals import pre_delete

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from django.core.checks import CheckMessage

    from gm_chat.doors import CurrentRuntime

__all__ = ["GmChatConfig"]


class GmChatConfig(AppConfig):
    """``"gm_chat"`` in ``INSTALLED_APPS``."""

    name = "gm_chat"
    verbose_name = "Chat"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the checks, make way for the routes, and tell where configuration and Runtime are."""
        # Imported here: importing the app's configuration must not need Django's settings.
        from gm_chat.doors import set_runtime_source
        from gm_chat.providers.base import set_default_config_source
        from gm_chat.routes import install

        register(run_checks, "gm_chat")
        register(run_deployment_checks, "gm_chat", deploy=True)
        pre_delete.connect(keep_usage, sender="gm_chat.ChatConversation", dispatch_uid="gm_chat.usage")
        set_default_config_source(provider_config)
        set_runtime_source(runtime)
        install()


def run_checks(app_configs: Sequence[AppConfig] | None, **_: Any) -> Sequence[CheckMessage]:
    """Run :func:`gm_chat.checks.check_chat`, unless ``manage.py check`` was asked about other apps only."""
    # Imported here: checks reach the whole chat, which a process that does not check need not load at start.
    from gm_chat.checks import check_chat

    return check_chat() if _is_asked(app_configs) else []


def run_deployment_checks(app_configs: Sequence[AppConfig] | None, **_: Any) -> Sequence[CheckMessage]:
    """Run :func:`gm_chat.checks.check_deployment`, for ``manage.py check --deploy``."""
    # Imported here for the same reason.
    from gm_chat.checks import check_deployment

    return check_deployment() if _is_asked(app_configs) else []


def _is_asked(app_configs: Sequence[AppConfig] | None) -> bool:
    return app_configs is None or any(config.name == GmChatConfig.name for config in app_configs)


def runtime() -> CurrentRuntime:
    """The process's Runtime, for the functions that the specification gives no argument to take it by."""
    # Imported here: it reaches the whole chat, which a process that never chats need not load at start.
    from gm_chat.wiring.doors import Doors

    return Doors()


def keep_usage(instance: Any, using: str, **_: Any) -> None:
    """Keep what a conversation had used when it is deleted: by ``chat_cleanup``, with its user, or by the project."""
    # Imported here: the models are not loaded yet when this module is.
    from gm_chat.persistence.ledger import bank

    bank(instance, using)


def provider_config() -> Mapping[str, Any]:
    """The chat's ``provider_config``, as plain copies that a provider may hand to its SDK."""
    # Imported here: reading the settings costs what a process that never chats need not pay at start.
    from gm_chat.settings import get_chat_settings, plain

    config: dict[str, Any] = plain(get_chat_settings().provider_config)
    return config
