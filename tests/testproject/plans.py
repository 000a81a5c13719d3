"""What planners, executors and synthesizers write, for scripts, and scripts of whole planned turns."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from gm_chat.providers.base import ProviderError
from gm_chat.testing.scripted import ScriptedRequest, call, done

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["PLANNED", "PLANNED_ROUNDS", "act", "answer", "complete", "directed", "plan", "task"]

PLANNED: Final[Mapping[str, Any]] = {"planned": {"enabled": True, "max_concurrent_tasks": 1}}


def plan(*tasks: Mapping[str, Any], intent: str = "read") -> str:
    """A plan of these tasks."""
    return json.dumps({"intent": intent, "tasks": list(tasks)})


def task(
    task_id: str = "t1",
    objective: str = "Find the materials.",
    *kinds: str,
    depends_on: Sequence[str] = (),
    operation: str = "sum",
) -> dict[str, Any]:
    """A task with a requirement of each kind, ``r1`` and so on; without any, of one query."""
    wanted = kinds or ("query",)
    requirements = [
        {
            "requirement_id": f"r{number}",
            "kind": kind,
            "description": objective,
            "operation": operation if kind == "calculation" else None,
        }
        for number, kind in enumerate(wanted, 1)
    ]
    features = {
        "has_dependency": bool(depends_on),
        "requires_calculation": "calculation" in wanted,
        "multiple_queries": wanted.count("query") > 1,
    }
    return {
        "task_id": task_id,
        "objective": objective,
        "depends_on": list(depends_on),
        "requirements": requirements,
        "completion_criteria": [item["requirement_id"] for item in requirements],
        "routing_features": [name for name, holds in features.items() if holds],
    }


def act(action: str, **members: Any) -> str:
    """An executor's action."""
    return json.dumps({"action": action, **members})


def complete(*evidence_ids: str) -> str:
    """The action that ends a task."""
    return act("complete", evidence_ids=list(evidence_ids) or ["t1:query:1"])


def answer(text: str = "There are none.", *evidence_ids: str) -> str:
    """A synthesizer's answer."""
    return json.dumps({"answer": text, "evidence_ids": list(evidence_ids) or ["t1:query:1"]})


def directed(made: str, tasks: Mapping[str, Sequence[Sequence[Any]]], said: str) -> list[Any]:
    """Rounds for tasks that run side by side: each call is answered by whose it is and how far its task has come."""

    def steps(request: ScriptedRequest) -> Sequence[Any]:
        last = next(message for message in request.messages if message.role == "user")
        for name, rounds in tasks.items():
            if last.content.startswith(f"Task {name}:"):
                return rounds[sum(message.role == "assistant" for message in request.messages)]
        return [made] if "You plan" in request.system else [said]

    return [steps] * 50


QUERY: Final = call("query", manager="MaterialManager", fields=["name"])
OTHER: Final = call("query", manager="MaterialManager", fields=["density"])
WRONG: Final = [[call("query", manager=f"No{number}Manager", fields=["x"])] for number in range(9)]
ONE: Final = plan(task())
TWO: Final = plan(task(), task("t2", "Find the parts."))
FOUND: Final[list[Any]] = [[QUERY], [complete()]]
SUM: Final = act(
    "calculate",
    requirement_id="r2",
    operation="count",
    operands=[{"evidence_id": "t1:query:1", "path": ["data"]}],
)
CHILD: Final = act("spawn_children", children=[task("c1", "Find the materials' names.")])
BOTH: Final = plan(task(), task("t2", "Compare materials.", depends_on=["t1"]))
FAILS: Final = [ProviderError("secret")]

PLANNED_ROUNDS: Final[Mapping[str, tuple[Sequence[Any], Mapping[str, Any]]]] = {
    "complete": ([[ONE], *FOUND, [answer()]], {}),
    "words before a call": ([[ONE], ["Let me look. ", QUERY], [complete()], [answer()]], {}),
    "partial": ([[TWO], *FOUND, [act("block", reason="secret")], [answer()]], {}),
    "a dependency": ([[BOTH], *FOUND, [OTHER], [complete("t2:query:1")], [answer()]], {}),
    "a dependency that is blocked": ([[BOTH], [act("block", reason="secret")]], {}),
    "two side by side": (
        directed(
            TWO,
            {"t1": FOUND, "t2": [[QUERY], [complete("t2:query:1")]]},
            answer("There are none.", "t1:query:1", "t2:query:1"),
        ),
        {"planned": {"enabled": True}},
    ),
    "a calculation": (
        [[plan(task("t1", "Count materials.", "query", "calculation", operation="count"))], [QUERY], [SUM], [answer()]],
        {},
    ),
    "a child": (
        [[plan(task("t1", "Materials", "query", "query"))], [CHILD], [QUERY], [complete("c1:query:1")],
         [complete("c1:query:1")], [complete("c1:query:1")], [answer()]],
        {},
    ),
    "a call again": ([[ONE], [QUERY], [QUERY], [answer()]], {}),
    "a plan, corrected": ([["No plan."], [ONE], *FOUND, [answer()]], {}),
    "a plan of the fallback": ([["No plan."], FAILS, [ONE], *FOUND, [answer()]], {}),
    "an action, corrected": ([[ONE], [complete()], [QUERY], [complete("t9:query:1")], [complete()], [answer()]], {}),
    "an executor that fails": ([[ONE], FAILS, *FOUND, [answer()]], {}),
    "an answer of the fallback": ([[ONE], *FOUND, FAILS, [answer()]], {}),
    "an answer, corrected": ([[ONE], *FOUND, [answer("There are 17.")], [answer()]], {}),
    "an answer, cut": ([[ONE], *FOUND, [answer("There are 17.")], [answer("There are 17. All are gone.")]], {}),
    "no plan": ([["No plan."], ["None."], ["None."]], {}),
    "no manager": ([[plan(task("t1", "Qzwx vbkj."))]], {}),
    "an executor that gives up": ([[ONE], [QUERY], [act("block", reason="secret")]], {}),
    "an executor without fruit": ([[ONE], *WRONG], {}),
    "no time": ([[ONE], [60]], {"planned": {"enabled": True, "evidence_timeout_seconds": 0.2}}),
    "no time for a half": (
        [[TWO], *FOUND, [60], [answer()]],
        {"planned": {"enabled": True, "max_concurrent_tasks": 1, "evidence_timeout_seconds": 2}},
    ),
    "no time to answer": ([[ONE], *FOUND, [60]], {"planned": {"enabled": True, "synthesis_timeout_seconds": 0.2}}),
    "no provider": ([FAILS, FAILS, FAILS], {}),
    "no provider for evidence": ([[ONE], FAILS, FAILS], {}),
    "no answer": ([[ONE], *FOUND, ["There are none."], [answer("a", "t9:query:1")]], {}),
    "too many tokens": (
        [[ONE], [QUERY, done(70, 50)]],
        {"rate_limit": {"tokens": 100, "output_reservation": 1, "window_seconds": 10**9}},
    ),
    "not worth a plan": ([["Hello."]], {"planned": {"enabled": True, "mode": "auto"}}),
}  # fmt: skip
