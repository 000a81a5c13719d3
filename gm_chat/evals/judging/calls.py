"""Judges of what was called: which tools, with which arguments, in which order, and how many."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from gm_chat.evals.judging.rows import plain
from gm_chat.evals.judging.texts import abbreviated
from gm_chat.evals.record import ToolUse, Verdict

if TYPE_CHECKING:
    from gm_chat.evals.dataset import Hard, Strategy, ToolCallPattern
    from gm_chat.evals.record import Observed

__all__ = ["contains", "judge_calls", "judge_strategy", "shown_call"]

QUERY: Final = "query"
_DIRECT: Final = "query_"
"""How the tools of ``tool_strategy: "direct"`` begin: each is a ``query`` of the manager that its name goes on with."""


def judge_calls(hard: Hard, observed: Observed) -> Iterator[Verdict]:
    """Judge required and forbidden calls, their order, and whether a mutation was put before the user."""
    calls = [_undirected(call) for call in observed.calls]
    names = [call.name for call in calls]
    for wanted in hard.required_tool_calls:
        yield _required(wanted, calls)
    if hard.forbidden_tools:
        made = [name for name in hard.forbidden_tools if name in names]
        why = f"called {', '.join(made)}" if made else f"{', '.join(hard.forbidden_tools)}: not called"
        yield Verdict(judge="forbidden_tools", passed=not made, why=why)
    if hard.tool_order:
        order = [name for name in dict.fromkeys(names) if name in hard.tool_order]
        why = f"expected {' before '.join(hard.tool_order)}; called first: {', '.join(order) or 'none of them'}"
        yield Verdict(judge="tool_order", passed=order == [*hard.tool_order], why=why)
    if hard.confirmation is not None:
        asked = ", ".join(observed.confirmations)
        found = f"the user was asked about {asked}" if asked else "the user was not asked"
        why = f"expected {hard.confirmation}; {found}"
        yield Verdict(judge="confirmation", passed=bool(asked) == (hard.confirmation == "required"), why=why)


def judge_strategy(strategy: Strategy, observed: Observed) -> Iterator[Verdict]:
    """Judge how the run got to its answer; no such verdict decides."""
    if strategy.max_rounds is not None:
        yield _at_most("max_rounds", strategy.max_rounds, observed.rounds)
    if strategy.max_tool_calls is not None:
        yield _at_most("max_tool_calls", strategy.max_tool_calls, len(observed.calls))
    if strategy.preferred_tools:
        names = {_undirected(call).name for call in observed.calls}
        unused = [name for name in strategy.preferred_tools if name not in names]
        why = f"not called: {', '.join(unused)}" if unused else f"called {', '.join(strategy.preferred_tools)}"
        yield Verdict(judge="preferred_tools", passed=not unused, why=why, is_hard=False)


def contains(given: Any, wanted: Any) -> bool:
    """Whether what is wanted occurs in what was given, as far down as it goes; 1 and ``"1.0"`` are equal.

    Of a list each item must have its own match, in whatever place.
    """
    if isinstance(wanted, Mapping):
        return isinstance(given, Mapping) and all(key in given and contains(given[key], wanted[key]) for key in wanted)
    if isinstance(wanted, list | tuple):
        return isinstance(given, list | tuple) and _all_matched(wanted, given)
    if isinstance(given, Mapping | list | tuple):
        return False
    if isinstance(wanted, bool) != isinstance(given, bool):
        return False
    return plain(given) == plain(wanted)


def _all_matched(wanted: Sequence[Any], given: Sequence[Any]) -> bool:
    """Match each item with one of its own, going back where an earlier choice stands in the way (Kuhn's algorithm)."""
    owner: dict[int, int] = {}

    def find(item: int, seen: set[int]) -> bool:
        for place, value in enumerate(given):
            if place in seen or not contains(value, wanted[item]):
                continue
            seen.add(place)
            if place not in owner or find(owner[place], seen):
                owner[place] = item
                return True
        return False

    return all(find(item, set()) for item in range(len(wanted)))


def shown_call(call: ToolUse, length: int = 160) -> str:
    """A call in one line: its tool and arguments."""
    return f"{call.name} {abbreviated(call.arguments, length)}"


def _required(wanted: ToolCallPattern, calls: Sequence[ToolUse]) -> Verdict:
    pattern = wanted.name + (f" with {abbreviated(wanted.args_contain)}" if wanted.args_contain else "")
    same = [call for call in calls if call.name == wanted.name]
    if found := next((call for call in same if contains(call.arguments, wanted.args_contain)), None):
        return Verdict(judge="required_tool_calls", passed=True, why=f"called {shown_call(found)}")
    names = dict.fromkeys(call.name for call in calls)
    made = "; ".join(shown_call(call, 100) for call in same[-3:]) or ", ".join(names) or "nothing"
    return Verdict(judge="required_tool_calls", passed=False, why=f"expected {pattern}; called {made}")


def _at_most(judge: str, most: int, count: int) -> Verdict:
    return Verdict(judge=judge, passed=count <= most, why=f"expected {most} at most; {count} were made", is_hard=False)


def _undirected(call: ToolUse) -> ToolUse:
    """A call of one manager's own query tool as the call of ``query`` that it is."""
    if not call.name.startswith(_DIRECT):
        return call
    arguments = {"manager": call.name.removeprefix(_DIRECT), **call.arguments}
    return ToolUse(name=QUERY, arguments=arguments, result=call.result)
