"""Findings about the audit: whether somebody takes its events, and whether those who must are there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.core import checks

from gm_chat.settings import suggestion

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gm_chat.host import PluginHost
    from gm_chat.settings import ChatSettings

__all__ = ["audit_findings"]

_INSTALL: Final = (
    'python -m pip install "gm-chat[chat-audit]", or send the events to a callable of yours: '
    'GM_CHAT["audit"]["logger"] = "dotted.path"'
)


def audit_findings(settings: ChatSettings, host: PluginHost) -> Iterator[checks.CheckMessage]:
    """What is amiss wherever the project runs: an operator who asked for an audit must not believe in one."""
    audit = settings.audit
    if not audit.enabled:
        return
    if audit.level == "off":
        yield checks.Warning(
            "The chat's audit is enabled, and its level is 'off': nothing is audited.",
            hint='GM_CHAT["audit"]["level"] = "all"',
            id="gm_chat.W020",
        )
        return
    names = [sink.name for sink in host.audit_sinks]
    missing = [name for name in audit.required if name not in names]
    if missing:
        yield checks.Error(
            f"audit['required'] names {', '.join(map(repr, missing))}, and there is no such audit sink: the chat "
            "refuses every message.",
            hint=" ".join(suggestion(name, names) for name in missing) if names else _INSTALL,
            id="gm_chat.E011",
        )
    elif not names:
        yield checks.Error(
            "The chat's audit is enabled, and nobody takes its events.",
            hint=_INSTALL,
            id="gm_chat.E011",
        )
