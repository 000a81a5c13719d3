"""The contract's small values, and what importing them costs."""

import subprocess
import sys
from typing import Any

import pytest

import gm_chat.plugin
from gm_chat.plugin import Actor, Decision, ToolContext, ToolDefinition, ToolError, ToolSpec, TurnContext, Verdict


@pytest.mark.parametrize(
    ("actor", "key", "authenticated"),
    [
        (Actor(user_id="7", session_key="s", address="a"), "user:7", True),
        (Actor(session_key="s", address="a"), "session:s", False),
        (Actor(session_key="", address="10.0.0.1"), "address:10.0.0.1", False),
        (Actor(), "anonymous", False),
    ],
)
def test_an_actor_is_user_then_session_then_address(actor: Actor, key: str, authenticated: bool) -> None:
    assert (actor.key, actor.is_authenticated) == (key, authenticated)


def test_the_user_object_takes_no_part_in_equality_or_repr() -> None:
    assert Actor(user_id="7", user=object()) == Actor(user_id="7", user=object())
    assert "object at" not in repr(Actor(user_id="7", user=object()))


def test_a_tool_s_context_knows_the_actor() -> None:
    actor = Actor(user_id="7")
    managers: Any = None
    context = ToolContext(TurnContext("t", None, actor, "hi", "http"), "c", managers, {})
    assert context.actor is actor


def test_what_the_model_reads_of_a_tool_error() -> None:
    error = ToolError("unknown_field", "no field 'pric'", allowed=["price"])
    assert error.as_result() == {"error": {"code": "unknown_field", "message": "no field 'pric'", "allowed": ["price"]}}
    assert str(error) == "no field 'pric'"


def test_decisions() -> None:
    assert [Decision.allow().verdict, Decision.deny("x").verdict, Decision.abstain().verdict] == list(Verdict)
    assert Decision.deny("because").reason == "because"


async def run(args: Any, context: Any) -> None: ...


@pytest.mark.parametrize("name", ["query", "_x", "A-b_9", "a" * 64])
def test_tool_names_that_every_provider_takes(name: str) -> None:
    assert ToolSpec(definition=ToolDefinition(name, "", {}), run=run).definition.name == name


@pytest.mark.parametrize("name", ["", "9x", "a.b", "a b", "ä", "a" * 65, "query\n"])
def test_tool_names_that_some_provider_refuses(name: str) -> None:
    with pytest.raises(ValueError, match="is not usable"):
        ToolSpec(definition=ToolDefinition(name, "", {}), run=run)


def test_a_write_tools_definition_says_so() -> None:
    definition = ToolDefinition("drop", "", {})
    assert not ToolSpec(definition=definition, run=run).definition.writes
    assert ToolSpec(definition=definition, run=run, kind="write").definition == ToolDefinition("drop", "", {}, True)
    assert not definition.writes


def test_everything_public_is_there() -> None:
    assert all(hasattr(gm_chat.plugin, name) for name in gm_chat.plugin.__all__)


def test_the_contract_costs_pluggy_and_nothing_else() -> None:
    code = (
        "import sys, gm_chat.plugin;"
        "own = {name.partition('.')[0] for name, module in sys.modules.items()"
        " if 'site-packages' in (getattr(module, '__file__', None) or '')};"
        "print(sorted(own - {'gm_chat', 'pluggy'} - set(sys.argv[1].split(','))))"
    )
    bare = "import sys; print(','.join(sorted({name.partition('.')[0] for name in sys.modules})))"
    before = subprocess.run([sys.executable, "-c", bare], capture_output=True, text=True, check=True).stdout.strip()
    done = subprocess.run([sys.executable, "-c", code, before], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
