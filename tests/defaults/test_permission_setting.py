from __future__ import annotations

import functools
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import AnonymousUser
from django.test import Client, override_settings

from gm_chat.defaults.permission_setting import PermissionSetting
from gm_chat.plugin import Action, Actor, Verdict
from gm_chat.testing.scripted import ScriptedProvider

CONNECT = Action("connect")


async def verdict(permission: Any, action: Action = CONNECT, actor: Actor | None = None) -> Verdict:
    decision = await PermissionSetting(permission).check(action, actor or Actor(), {"scope": {"path": "/chat/"}})
    return decision.verdict


async def test_only_false_denies() -> None:
    assert await verdict(lambda user, scope: False) is Verdict.DENY
    for answer in (True, None, 0, ""):
        assert await verdict(lambda user, scope, answer=answer: answer) is Verdict.ABSTAIN


async def test_async_callables_are_awaited() -> None:
    async def never(user: Any, scope: Any) -> bool:
        return False

    class Never:
        async def __call__(self, user: Any, scope: Any) -> bool:
            return False

    assert await verdict(never) is Verdict.DENY
    assert await verdict(functools.partial(never)) is Verdict.DENY
    assert await verdict(Never()) is Verdict.DENY


async def test_it_is_asked_about_people_not_about_tools() -> None:
    asked: list[Any] = []

    def note(user: Any, scope: Any) -> None:
        asked.append((user, scope["path"]))

    for kind in ("connect", "message", "confirm", "tool", "mutation"):
        await verdict(note, Action(kind))
    assert [path for _, path in asked] == ["/chat/"] * 3
    assert all(isinstance(user, AnonymousUser) for user, _ in asked)


def counts_users(user: Any, scope: Any) -> bool:
    """May use the ORM, although it is called inside an async view."""
    return bool(get_user_model().objects.count() > 1 and user.is_authenticated)


@pytest.mark.django_db(transaction=True)
@override_settings(
    GM_CHAT={
        "enabled": True,
        "provider": "gm_chat.testing.ScriptedProvider",
        "permission": counts_users,
    }
)
def test_a_sync_permission_guards_the_routes(client: Client) -> None:
    alice = get_user_model().objects.create_user("alice")
    client.force_login(alice)
    url, message = "/chat/", {"text": "Hello?"}
    denied = client.post(url, message, content_type="application/json")
    assert (denied.status_code, denied.json()) == (403, {"detail": "Forbidden"})
    get_user_model().objects.create_user("bob")
    with ScriptedProvider.playing(["Hello."]):
        allowed = client.post(url, message, content_type="application/json")
    assert allowed.json()["answer"] == "Hello."
