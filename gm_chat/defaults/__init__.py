"""What gm-chat itself brings, as a plugin like everybody else's.

The built-in tools, the Django-model source, the login check for changes, the rate-limit store ``cache``, the audit sink
of the setting ``audit.logger`` and the catalog of ``planned.catalog`` come in through the hooks that third parties use.
"""

from gm_chat.defaults.plugin import CORE_PLUGIN, CorePlugin, core_plugins

__all__ = ["CORE_PLUGIN", "CorePlugin", "core_plugins"]
