"""The chat's routes, added to the project's URLs without touching its URLconf.

Enabling the chat is enough to have its routes: a project need not edit its ``urls.py``. Importing ``ROOT_URLCONF``
while apps are still loading would run views, and all that they import, too early; so nothing is added at start.
Instead the root URL resolver is asked to show our routes together with the project's when Django populates it: on
the first request, ``reverse()`` or ``manage.py check``, under ASGI, WSGI and tests alike, and again whenever Django
builds a new resolver (``override_settings(ROOT_URLCONF=...)``, ``clear_url_caches()``).

Rejected: assigning another ``ROOT_URLCONF`` (lost under ``override_settings``, visible to the project), appending to
the URLconf's own list (needs its import), middleware (``reverse()`` would not know the names).
(Specification: "Settings", "Routes and request contracts".)
"""

from __future__ import annotations

import functools
import logging
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings as django_settings
from django.core.signals import setting_changed
from django.urls import URLPattern, URLResolver, clear_url_caches, get_resolver, include, path
from django.urls.resolvers import RegexPattern
from django.utils.functional import cached_property

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["NAMESPACE", "included_by_project", "install"]

NAMESPACE: Final = "gm_chat"

Patterns = list[URLPattern | URLResolver]
logger = logging.getLogger(__name__)


def install() -> None:
    """Let the root URL resolver show the chat's routes as well. Called once, when the app is ready; imports nothing.

    Does nothing the second time. What ``enabled`` and ``url`` say is read when the resolver is populated.
    """
    project_patterns: Callable[[URLResolver], Any] = URLResolver.__dict__["url_patterns"].func
    if hasattr(project_patterns, "__wrapped__"):
        return

    @functools.wraps(project_patterns)
    def url_patterns(resolver: URLResolver) -> Any:
        patterns = project_patterns(resolver)
        return [*_startup_routes(patterns), *patterns] if _is_root(resolver) else patterns

    lazy = cached_property(url_patterns)
    lazy.__set_name__(URLResolver, "url_patterns")
    URLResolver.url_patterns = lazy  # type: ignore[assignment]  # the stubs show the property's value
    setting_changed.connect(_rebuild, dispatch_uid="gm_chat.routes")


def included_by_project(patterns: Patterns) -> bool:
    """Whether the project's own URLs, at any depth, already hold ``include("gm_chat.urls")``."""
    own = URLResolver(RegexPattern(r"^/"), patterns)
    return NAMESPACE in own.app_dict or NAMESPACE in own.namespace_dict


def _is_root(resolver: URLResolver) -> bool:
    """Whether requests start here; a URLconf of a single request (``request.urlconf``) is that project's business."""
    urlconf = getattr(django_settings, "ROOT_URLCONF", None)
    return urlconf is not None and resolver is get_resolver(urlconf)


def _startup_routes(patterns: Patterns) -> Patterns:
    """The chat's routes at the configured place. They come first: a catch-all of the project must not hide them."""
    # Imported here: reading settings costs what a process that serves no request need not pay at start.
    from gm_chat.settings import ChatConfigurationError, get_chat_settings

    try:
        settings = get_chat_settings()
    except ChatConfigurationError as error:
        logger.error("The chat has no routes, because its settings are invalid. %s", error)
        return []
    if not settings.enabled or included_by_project(patterns):
        return []
    return [path(settings.url.removeprefix("/"), include("gm_chat.urls"))]


def _rebuild(*, setting: str, **_: Any) -> None:
    from gm_chat.settings import SETTING_NAMES  # imported here for the same reason as above

    if setting in SETTING_NAMES:
        clear_url_caches()
