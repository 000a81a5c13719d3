"""What the schema's resolvers find in ``info.context``: who asks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.http import HttpRequest

if TYPE_CHECKING:
    from gm_chat.plugin import Actor

__all__ = ["ChatRequest", "request_of"]


class ChatRequest(HttpRequest):
    """A request with nothing but a user.

    It is the context (graphene's ``info.context.user``), and holds itself as an object (strawberry's
    ``info.context.request``) and as a mapping does (ariadne's ``info.context["request"]``).
    """

    user: Any

    @property
    def request(self) -> ChatRequest:
        """The same object."""
        return self

    def __getitem__(self, name: str) -> Any:
        if name in ("request", "user"):
            return getattr(self, name)
        raise KeyError(name)

    def get(self, name: str, default: Any = None) -> Any:
        """As a mapping's."""
        return getattr(self, name) if name in ("request", "user") else default


def request_of(actor: Actor) -> ChatRequest:
    """The default context: the actor's user, else an anonymous one, and the client's address if it is known."""
    # Imported here: the module needs models, which `django.setup()` has not loaded when plugins are.
    from django.contrib.auth.models import AnonymousUser

    request = ChatRequest()
    request.method = "POST"
    request.user = AnonymousUser() if actor.user is None else actor.user
    if actor.address:
        request.META["REMOTE_ADDR"] = actor.address
    return request
