"""The composition root: settings, plugins, managers, persistence and the turn engine become one :class:`Runtime`.

``get_runtime()`` builds it on first use and keeps it for the process; a change of Django's settings (tests'
``override_settings``) drops it. No other module holds such state.
"""

from gm_chat.wiring.runtime import Runtime, get_runtime, reset_runtime

__all__ = ["Runtime", "get_runtime", "reset_runtime"]
