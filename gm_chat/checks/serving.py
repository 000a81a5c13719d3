"""Findings about how a project serves the chat: routes, WebSocket, middleware, databases, origins."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings as django_settings
from django.contrib.auth import get_user_model
from django.core import checks
from django.core.handlers.asgi import ASGIHandler
from django.db import connections, router
from django.http import HttpRequest, StreamingHttpResponse
from django.urls import NoReverseMatch, get_script_prefix, resolve, reverse
from django.utils.module_loading import import_string

from gm_chat.host.problems import Failed, attempt
from gm_chat.persistence.database import chat_database

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gm_chat.settings import ChatSettings

__all__ = ["deployment_findings", "serving_findings"]

_SQLITE_SECONDS: Final = 20
_COMPRESSING: Final = ("gzip", "brotli", "compress", "zstd", "deflate")
_FRAME: Final = b'data: {"type":"text_chunk"}\n\n'
_STACK_DEPTH: Final = 50


def serving_findings(settings: ChatSettings) -> Iterator[checks.CheckMessage]:
    """What is amiss wherever the project runs."""
    yield from _routes(settings)
    yield from _websocket(settings)
    yield from _compression()
    yield from _sqlite()
    yield from _apart_from_users()


def deployment_findings(settings: ChatSettings) -> Iterator[checks.CheckMessage]:
    """What is amiss in production, with the public at the door."""
    if not settings.allowed_origins and "*" in django_settings.ALLOWED_HOSTS:
        yield checks.Warning(
            "ALLOWED_HOSTS allows every host, so any website may open the chat's WebSocket with a visitor's cookies.",
            hint='List the hosts in ALLOWED_HOSTS, or set GM_CHAT["allowed_origins"] = ["https://www.example.com"].',
            id="gm_chat.W009",
        )


# --- routes -----------------------------------------------------------------------------------------------------


def _routes(settings: ChatSettings) -> Iterator[checks.CheckMessage]:
    if not getattr(django_settings, "ROOT_URLCONF", None):
        return
    try:
        url = reverse("gm_chat:chat")
    except NoReverseMatch:
        line = f'path("{settings.url.removeprefix("/")}", include("gm_chat.urls")),'
        yield checks.Warning(
            "The chat is enabled, but its routes are not installed.",
            hint=f"Add to urlpatterns in {django_settings.ROOT_URLCONF}: {line}",
            id="gm_chat.W004",
        )
        return
    except Exception:  # noqa: BLE001 - a URLconf that cannot be imported is Django's own finding
        return
    answering = attempt(lambda: resolve("/" + url.removeprefix(get_script_prefix())))
    if not isinstance(answering, Failed) and "gm_chat" not in answering.app_names:
        yield checks.Warning(
            f"The chat's path {url!r} is answered by another view, {answering._func_path}, which comes first.",
            hint='Move include("gm_chat.urls") up in urlpatterns, or choose another path.',
            id="gm_chat.W004",
        )


def _websocket(settings: ChatSettings) -> Iterator[checks.CheckMessage]:
    """Judge the ASGI application that the project names; one that names none is served over HTTP for all we know."""
    path = getattr(django_settings, "ASGI_APPLICATION", None)
    if not path:
        return
    application = attempt(lambda: import_string(path))
    if isinstance(application, Failed):
        problem = f"cannot be imported: {application}"
    elif _serves_chat(application) is False:
        problem = f"has no route for the WebSocket of the chat at {settings.url!r}."
    else:
        return
    yield checks.Warning(
        f"ASGI_APPLICATION {path!r} {problem}",
        hint='Without an ASGI module of your own: ASGI_APPLICATION = "gm_chat.asgi.application". With one, write in '
        f"{path.rpartition('.')[0]}:\n"
        "\tfrom channels.routing import ProtocolTypeRouter\n"
        "\tfrom gm_chat.asgi import websocket_application\n"
        '\tapplication = ProtocolTypeRouter({"http": application, "websocket": websocket_application()})',
        id="gm_chat.W006",
    )


def _serves_chat(application: object) -> bool | None:
    """Whether the chat's socket lies behind an ASGI application; ``None`` for one that cannot be looked into."""
    # Imported here: Channels is needed at no start, and by no project without sockets.
    from channels.routing import ProtocolTypeRouter, URLRouter  # type: ignore[import-untyped]  # it has no type hints

    from gm_chat.routing import chat

    for _ in range(_STACK_DEPTH):
        if application is chat:
            return True
        if application is None or isinstance(application, ASGIHandler) or hasattr(application, "consumer_class"):
            return False
        if isinstance(application, URLRouter):
            answers = [_serves_chat(route.callback) for route in application.routes]
            return True if True in answers else None if None in answers else False
        if isinstance(application, ProtocolTypeRouter):
            application = application.application_mapping.get("websocket")
        else:  # the middleware of Channels and of others keeps what it wraps under one of these names
            inner = getattr(application, "inner", None) or getattr(application, "application", None)
            if inner is None:
                return None
            application = inner
    return None


# --- middleware -------------------------------------------------------------------------------------------------


def _compression() -> Iterator[checks.CheckMessage]:
    """Show a stream like ours to what looks like a compressor: those that heed ``Content-Encoding`` let it pass."""
    for path in django_settings.MIDDLEWARE:
        if any(word in path.lower() for word in _COMPRESSING):
            passed = attempt(partial(_lets_streams_pass, path))
            if passed is False:
                yield checks.Warning(
                    f"The middleware {path} compresses event streams, so that a chat's answer comes all at once.",
                    hint="Use django.middleware.gzip.GZipMiddleware, which lets responses with a Content-Encoding "
                    'pass as they are; the chat\'s streams say "identity".',
                    id="gm_chat.W007",
                )


def _lets_streams_pass(path: str) -> bool:
    request = HttpRequest()
    request.method = "GET"
    request.META["HTTP_ACCEPT_ENCODING"] = "gzip, deflate, br, zstd"
    response: Any = import_string(path)(_answer_with_stream)(request)
    return bool(response["Content-Encoding"] == "identity" and b"".join(response.streaming_content) == _FRAME * 100)


def _answer_with_stream(request: HttpRequest) -> StreamingHttpResponse:  # noqa: ARG001 - what a view is given
    headers = {"Content-Encoding": "identity"}
    return StreamingHttpResponse(iter([_FRAME] * 100), content_type="text/event-stream", headers=headers)


# --- database -----------------------------------------------------------------------------------------


def _sqlite() -> Iterator[checks.CheckMessage]:
    database = django_settings.DATABASES.get("default", {})
    options: Mapping[str, Any] = database.get("OPTIONS") or {}
    if database.get("ENGINE") != "django.db.backends.sqlite3" or "memory" in str(database.get("NAME")):
        return
    ready = (
        options.get("transaction_mode") == "IMMEDIATE"
        and float(options.get("timeout") or 0) >= _SQLITE_SECONDS
        and "wal" in str(options.get("init_command", "")).lower()
    )
    if not ready:
        yield checks.Warning(
            "The default database is SQLite in its standard mode: turns that run side by side fail with "
            '"database is locked".',
            hint='DATABASES["default"]["OPTIONS"] = {"transaction_mode": "IMMEDIATE", "timeout": 20, '
            '"init_command": "PRAGMA journal_mode=WAL"}',
            id="gm_chat.W005",
        )


def _apart_from_users() -> Iterator[checks.CheckMessage]:
    """Judge the project's routers: a foreign key reaches no other database."""
    chat, users = chat_database(), router.db_for_write(get_user_model())
    if _place(chat) != _place(users):
        yield checks.Error(
            f"The chat's tables are in the database {chat!r} and the users in {users!r}: conversations belong to users "
            "by a foreign key, so that either migrate or every turn fails.",
            hint=f"Let DATABASE_ROUTERS give the app gm_chat and the users' app the same database, such as {users!r}.",
            id="gm_chat.E012",
        )


def _place(alias: str) -> tuple[object, ...]:
    """Where a database is: several aliases may lead to one, and a router may name one that does not exist."""
    database = connections.settings.get(alias, {})
    return tuple(database.get(key) for key in ("ENGINE", "HOST", "PORT", "NAME"))
