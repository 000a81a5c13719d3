"""What a user is shown before a change, over each transport that can ask, and what comes of it if the data moved on."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.test import AsyncClient
from testproject.shop.models import Material, Part, Tag
from testproject.socket_client import connected

from gm_chat import signals
from gm_chat.models import ChatPendingConfirmation
from gm_chat.persistence.threads import run_db
from gm_chat.testing.scripted import ScriptedProvider, call
from gm_chat.wiring import reset_runtime

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.django_db(transaction=True)

CHANGES = ["updatePart", "deletePart", "updateTag"]


@pytest.fixture(autouse=True)
def project(settings: Any) -> None:
    settings.GM_CHAT = {**settings.GM_CHAT, "allowed_mutations": CHANGES, "confirm_mutations": CHANGES}


@pytest.fixture
def user() -> Any:
    made = get_user_model().objects.create_user("ada")
    rights = ["view_part", "view_material", "view_tag", "change_part", "delete_part", "change_tag"]
    made.user_permissions.set(Permission.objects.filter(codename__in=rights))
    return made


@pytest.fixture
def browser(user: Any) -> AsyncClient:
    browser = AsyncClient()
    browser.force_login(user)
    return browser


@pytest.fixture
def part() -> Any:
    steel = Material.objects.create(name="Steel", density=7.8)
    return Part.objects.create(number="X-1", name="Bolt", price="9.90", material=steel)


@pytest.fixture
def outcomes() -> Iterator[list[Any]]:
    heard: list[Any] = []

    def receiver(sender: Any, signal: Any, mutation: str, result: Any, **_: Any) -> None:
        heard.append((mutation, result))

    signals.chat_mutation_executed.connect(receiver)
    yield heard
    signals.chat_mutation_executed.disconnect(receiver)


async def post(browser: AsyncClient, path: str, body: Any) -> Any:
    return await browser.post(path, json.dumps(body), content_type="application/json")


async def say(browser: AsyncClient) -> list[dict[str, Any]]:
    response = await post(browser, "/chat/stream/", {"text": "Change it"})
    text = b"".join([chunk async for chunk in response.streaming_content]).decode()
    return [json.loads(line.removeprefix("data: ")) for line in text.splitlines() if line.startswith("data: ")]


async def confirm(browser: AsyncClient, id: str, *, approved: bool = True) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = (
        await post(browser, "/chat/confirm/", {"confirmation_id": id, "confirmed": approved})
    ).json()["events"]
    return events


async def state() -> str:
    return (await ChatPendingConfirmation.objects.alatest("pk")).state


def raise_price(part: Any) -> str:
    Part.objects.filter(pk=part.pk).update(price="11.00")
    return "conflict"


def delete(part: Any) -> str:
    Part.objects.filter(pk=part.pk).delete()
    return "not_found"


def take_name(part: Any) -> str:
    Part.objects.create(number="X-2", name="Nut", material=part.material)
    return "validation_failed"


def take_right(part: Any) -> str:
    get_user_model().objects.get().user_permissions.remove(
        Permission.objects.get(content_type__app_label="shop", codename="change_part")
    )
    return "mutation_not_allowed"


@pytest.mark.parametrize("meanwhile", [raise_price, delete, take_name, take_right])
async def test_what_does_not_hold_any_more_does_not_run_and_everybody_learns_it(
    browser: AsyncClient, part: Any, outcomes: list[Any], meanwhile: Callable[[Any], str]
) -> None:
    change = call("mutate", mutation="updatePart", input={"id": part.pk, "price": "12", "number": "X-2"})
    with ScriptedProvider.playing([change], ["It was changed meanwhile."]) as script:
        *_, asked = await say(browser)
        changes = [
            {"field": "number", "old": "X-1", "new": "X-2"},
            {"field": "price", "old": "9.90", "new": "12.00"},
        ]
        preview = {
            "action": "update",
            "manager": "PartManager",
            "tried": True,
            "row": {"id": part.pk, "label": "Bolt"},
            "changes": changes,
        }
        assert (asked["type"], asked["preview"]) == ("confirm_mutation", preview)
        (waiting,) = (await browser.get("/chat/confirmations/")).json()["confirmations"]
        assert (waiting["id"], waiting["preview"]) == (asked["id"], preview)
        code = await run_db(meanwhile, part)
        reset_runtime()  # as another process would see it
        result, *_, last = await confirm(browser, asked["id"])
    assert (result["result"]["status"], result["result"]["error"]["code"]) == ("failed", code)
    assert last["type"] == "done"
    assert script.requests[-1].results == [result["result"]]
    assert outcomes == [("updatePart", result["result"])]
    assert await state() == "failed"
    left = await Part.objects.filter(pk=part.pk).afirst()
    assert left is None or (left.number, str(left.price)) in {("X-1", "9.90"), ("X-1", "11.00")}


async def test_what_could_not_happen_is_told_to_the_model_and_not_put_before_the_user(
    browser: AsyncClient, part: Any, outcomes: list[Any]
) -> None:
    taken = call("mutate", mutation="updatePart", input={"id": part.pk, "name": ""})
    bound = call("mutate", mutation="deletePart", input={"id": part.pk}, expected={"price": "1"})
    with ScriptedProvider.playing([taken], [bound], ["No."]) as script:
        events = await say(browser)
    assert [event["type"] for event in events] == [
        "tool_call", "tool_result", "tool_call", "tool_result", "text_chunk", "done",
    ]  # fmt: skip
    codes = [result["error"]["code"] for result in script.requests[-1].results]
    assert codes == ["validation_failed", "conflict"]
    assert not await ChatPendingConfirmation.objects.aexists()
    assert outcomes == []


async def test_a_socket_shows_it_too_and_what_was_shown_runs(
    browser: AsyncClient, part: Any, outcomes: list[Any]
) -> None:
    cookies = {name: morsel.value for name, morsel in browser.cookies.items()}
    change = call("mutate", mutation="deletePart", input={"id": part.pk}, expected={"price": "9.9"})
    with ScriptedProvider.playing([change], ["Gone."]):
        async with connected(cookies=cookies) as socket:
            await socket.send({"type": "message", "text": "Delete it"})
            *_, asked = await socket.rest()
            assert asked["preview"]["also_deleted"] == []
            assert {"field": "price", "old": "9.90"} in asked["preview"]["changes"]
            await socket.send({"type": "confirm", "confirmation_id": asked["id"], "confirmed": True})
            result, *_ = await socket.rest()
    assert result["result"] == {"status": "executed", "data": {"id": part.pk}}
    assert await state() == "executed"
    assert not await Part.objects.aexists()
    assert len(outcomes) == 1


async def test_of_two_approvals_of_the_same_row_the_second_finds_it_changed(part: Any) -> None:
    """Two users are shown the same old name; both approve at once."""
    tag = await Tag.objects.acreate(name="old")
    browsers = []
    for name in ("one", "two"):
        someone = await get_user_model().objects.acreate(username=name, is_superuser=True)
        browsers.append(AsyncClient())
        await run_db(browsers[-1].force_login, someone)
    asked = []
    for number, browser in enumerate(browsers):
        change = call("mutate", mutation="updateTag", input={"id": tag.pk, "name": f"new {number}"})
        with ScriptedProvider.playing([change]):
            asked.append((await say(browser))[-1])
    with ScriptedProvider.playing(["One."], ["Two."]):
        answers = await asyncio.gather(
            *(confirm(browser, item["id"]) for browser, item in zip(browsers, asked, strict=True))
        )
    results = [events[0]["result"] for events in answers]
    assert sorted(result["status"] for result in results) == ["executed", "failed"]
    (failed,) = (result for result in results if result["status"] == "failed")
    assert failed["error"]["code"] == "conflict"
    await tag.arefresh_from_db()
    (done,) = (result for result in results if result["status"] == "executed")
    assert tag.name == done["data"]["name"]
