"""What makes a function a route of the chat, and the answers that several routes give."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from django.db import connections, transaction
from django.http import HttpResponse
from django.views.decorators.csrf import csrf_protect
from django.views.decorators.http import require_http_methods

from gm_chat.encoding import to_json

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

    from django.http import HttpRequest
    from django.http.response import HttpResponseBase

    View = Callable[..., Coroutine[Any, Any, HttpResponseBase]]

__all__ = ["Forbidden", "chat_view", "json_response", "not_found"]


class Forbidden(Exception):  # noqa: N818 - a decision, told to the client as 403
    """A permission check denied the connection."""


def chat_view(*methods: str) -> Callable[[View], View]:
    """Make a view a route of the chat: these methods only, protected against CSRF whatever the project's middleware.

    A request's own transaction (``ATOMIC_REQUESTS``), which Django refuses to async views, is declined: a turn may
    last minutes, and keeps what it needs in short transactions.
    """

    def decorate(view: View) -> View:
        @functools.wraps(view)
        async def admitted(request: HttpRequest, **arguments: Any) -> HttpResponseBase:
            try:
                return await view(request, **arguments)
            except Forbidden:
                return json_response({"detail": "Forbidden"}, status=403)

        route: View = require_http_methods(methods)(csrf_protect(admitted))
        for alias in connections:
            route = transaction.non_atomic_requests(using=alias)(route)
        return route

    return decorate


def json_response(value: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> HttpResponse:
    """A response in the chat's own JSON, which caches keep away from."""
    headers = {"Cache-Control": "no-store", **(headers or {})}
    return HttpResponse(to_json(value), status=status, content_type="application/json", headers=headers)


def not_found() -> HttpResponse:
    """The answer for what does not exist, and for what is somebody else's: one cannot be told from the other."""
    return json_response({"detail": "There is no such turn."}, status=404)
