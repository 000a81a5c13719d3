"""The demo's own pages: one to ask on, which a terminal sees as plain text, and a login that works with curl."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.contrib.auth import authenticate, login
from django.http import HttpResponse, JsonResponse
from django.middleware.csrf import get_token
from django.shortcuts import render
from django.views.decorators.csrf import csrf_exempt, ensure_csrf_cookie
from django.views.decorators.http import require_POST, require_safe
from django.views.decorators.vary import vary_on_headers

from gm_chat.demo.access import USERS

if TYPE_CHECKING:
    from django.http import HttpRequest

__all__ = ["home", "log_in"]


CONTENT_SECURITY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""What the page may load: its own script and style, and nothing from elsewhere, whatever an answer says."""


@require_safe
@ensure_csrf_cookie
@vary_on_headers("Accept")
def home(request: HttpRequest) -> HttpResponse:
    """Show a browser the page to ask on, and others what the terminal shows.

    It hands out a CSRF cookie, which is all that an anonymous client needs.
    """
    banner = getattr(settings, "DEMO_BANNER", "")
    if "text/html" not in request.headers.get("Accept", ""):
        return HttpResponse(banner, content_type="text/plain; charset=utf-8")
    response = render(request, "workshop/page.html", {"banner": banner, "users": USERS})
    response["Content-Security-Policy"] = CONTENT_SECURITY
    return response


# A form without a page cannot carry a CSRF token; all that a forged login could reach is the demo's invented data.
@csrf_exempt
@require_POST
def log_in(request: HttpRequest) -> JsonResponse:
    """Log in with ``username`` and ``password``, as a form or as JSON. Sets the session and the CSRF cookie."""
    if request.content_type == "application/json":
        try:
            fields = json.loads(request.body)
        except (ValueError, RecursionError):  # what is nested 5,000 deep is no login either
            fields = None
        if not isinstance(fields, dict):
            return JsonResponse({"detail": "the body must be a JSON object with username and password"}, status=400)
    else:
        fields = request.POST
    name, password = fields.get("username"), fields.get("password")
    if not isinstance(name, str) or not isinstance(password, str):
        return JsonResponse({"detail": "username and password are needed, both as text"}, status=400)
    user = authenticate(request, username=name, password=password)
    if user is None:
        return JsonResponse({"detail": "unknown user or wrong password"}, status=403)
    login(request, user)
    return JsonResponse({"user": user.get_username(), "csrf_token": get_token(request)})
