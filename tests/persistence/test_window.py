from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from testproject.stored import closed, opened, tool_turn

from gm_chat.engine.ports import OpenedTurn, StoredMessage
from gm_chat.models import ChatConversation, ChatMessage

if TYPE_CHECKING:
    from gm_chat.persistence.conversations import DjangoTurnStore

pytestmark = pytest.mark.django_db(transaction=True)


async def turns(store: DjangoTurnStore, *sizes: int) -> None:
    for number, size in enumerate(sizes):
        await store.close_turn(
            closed(f"t{number}", await opened(store, f"t{number}", f"q{number}", max_messages=0), *tool_turn(size))
        )


async def test_history_comes_back_as_it_was_stored(store: DjangoTurnStore) -> None:
    await store.close_turn(closed("t1", await opened(store, "t1", "First"), *tool_turn(2)))
    assert (await opened(store, "t2")).history == (StoredMessage(role="user", content="First"), *tool_turn(2))


@pytest.mark.parametrize("limit", range(7, 12))
async def test_it_starts_at_a_user_message_and_cuts_no_tool_group(store: DjangoTurnStore, limit: int) -> None:
    await turns(store, 3, 3)  # 6 rows each
    history = (await opened(store, "x", max_messages=limit)).history
    assert [message.role for message in history] == ["user", "assistant", "tool", "tool", "tool", "assistant"]
    assert history[0].content == "q1"


async def test_a_turn_longer_than_the_window_is_kept_whole(store: DjangoTurnStore) -> None:
    await turns(store, 1, 9)
    history = (await opened(store, "x", max_messages=5)).history
    assert history[0].content == "q1"
    assert len(history) == 12


async def test_no_history_when_none_is_wanted(store: DjangoTurnStore) -> None:
    await turns(store, 1)
    assert (await opened(store, "x", max_messages=0)).history == ()


async def test_rows_without_any_user_message_are_no_window(store: DjangoTurnStore) -> None:
    await turns(store, 1)
    await ChatMessage.objects.filter(role="user").adelete()
    assert (await opened(store, "x")).history == ()


async def test_a_conversation_that_lost_its_messages_goes_on(store: DjangoTurnStore) -> None:
    await turns(store, 1)
    await ChatMessage.objects.all().adelete()
    assert await opened(store, "x") == OpenedTurn(str((await ChatConversation.objects.aget()).pk), ())
