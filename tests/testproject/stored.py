"""Turns for tests of the store: what clients ask, what turns leave, what waits for approval."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.utils import timezone

from gm_chat.engine.events import ConfirmMutation, Done, TextChunk, ToolCall
from gm_chat.engine.ports import (
    ClosedTurn,
    ConfirmRequest,
    JoinedTurn,
    OpenedTurn,
    PendingMutation,
    Progress,
    StoredMessage,
    TurnRequest,
)
from gm_chat.plugin import Actor, TurnOutcome
from gm_chat.providers.base import TokenUsage

if TYPE_CHECKING:
    from datetime import datetime

    from gm_chat.engine.ports import TurnStore

ANONYMOUS = Actor(session_key="s" * 32)
STRANGER = Actor(session_key="x" * 32)
CALL: dict[str, Any] = {"id": "c1", "name": "query", "args": {"manager": "PartManager"}}
BOLT: dict[str, Any] = {"name": "Bolt", "price": "9.90", "weight": 1e16}
PREVIEW: dict[str, Any] = {"action": "create", "tried": True, "changes": [{"field": "weight", "new": 1e16}]}


def request(text: str = "Hello", actor: Actor = ANONYMOUS, key: str | None = None) -> TurnRequest:
    return TurnRequest(actor=actor, text=text, transport="http", key=key)


def confirmation(id: str = "c1", actor: Actor = ANONYMOUS, *, approved: bool = True) -> ConfirmRequest:
    return ConfirmRequest(actor=actor, confirmation_id=id, approved=approved, transport="sse")


async def opened(
    store: TurnStore, turn_id: str, text: str = "Hello", actor: Actor = ANONYMOUS, *, max_messages: int = 20
) -> OpenedTurn:
    turn = await store.open_turn(request(text, actor), turn_id, max_messages=max_messages)
    assert not isinstance(turn, JoinedTurn)
    return turn


def closed(turn_id: str, opened: OpenedTurn, *messages: StoredMessage, **changes: Any) -> ClosedTurn:
    usage = changes.pop("usage", TokenUsage(10, 5))
    values: dict[str, Any] = {
        "turn_id": turn_id,
        "conversation_id": opened.conversation_id,
        "messages": messages or (StoredMessage(role="assistant", content="Hi"),),
        "outcome": TurnOutcome("done", input_tokens=usage.input_tokens, output_tokens=usage.output_tokens),
        "usage": usage,
        "events": (TextChunk("Hi"), Done(usage)),
    }
    return ClosedTurn(**values | changes)


def tool_turn(results: int = 1) -> tuple[StoredMessage, ...]:
    """Messages of a turn with one batch of calls and an answer in words."""
    calls = tuple(CALL | {"id": f"c{index}"} for index in range(results))
    return (
        StoredMessage(role="assistant", content="Let me look.", tool_calls=calls, provider="openai", metadata={"s": 1}),
        *(
            StoredMessage(
                role="tool",
                content='{"data": []}',
                tool_call_id=call["id"],
                tool_name="query",
                tool_args=call["args"],
                tool_result={"data": [], "total_count": 0},
            )
            for call in calls
        ),
        StoredMessage(role="assistant", content="None."),
    )


async def paused(
    store: TurnStore,
    turn_id: str = "t1",
    id: str = "c1",
    actor: Actor = ANONYMOUS,
    *,
    text: str = "Create a bolt",
    expires_at: datetime | None = None,
) -> ClosedTurn:
    """Open a turn and let it wait for the approval of ``id``; return what it was paused with."""
    turn = waiting(turn_id, id, await opened(store, turn_id, text, actor), expires_at)
    await store.close_turn(turn)
    return turn


def waiting(turn_id: str, id: str, opened: OpenedTurn, expires_at: datetime | None = None) -> ClosedTurn:
    args = {"mutation": "createPart", "input": BOLT}
    return closed(
        turn_id,
        opened,
        StoredMessage(role="assistant", content="One bolt.", tool_calls=[{"id": id, "name": "mutate", "args": args}]),
        outcome=TurnOutcome("paused", input_tokens=10, output_tokens=5),
        events=(TextChunk("One bolt."), ToolCall(id, "mutate", args), ConfirmMutation(id, "createPart", BOLT, PREVIEW)),
        pending=PendingMutation(
            id=id,
            mutation="createPart",
            input=BOLT,
            expires_at=expires_at or timezone.now() + timedelta(minutes=5),
            progress=Progress(rounds=2, failed_rounds=1, mutations=1, seconds=1.5, usage=TokenUsage(10, 5)),
            preview=PREVIEW,
        ),
    )


def answer(id: str = "c1", result: Any = None) -> StoredMessage:
    """The tool's answer to the call that waited."""
    return StoredMessage(
        role="tool",
        tool_call_id=id,
        tool_name="mutate",
        tool_args={"mutation": "createPart", "input": BOLT},
        tool_result={"status": "executed", "data": {"id": 7}} if result is None else result,
    )
