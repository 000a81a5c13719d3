"""What ``docs/planned.md`` promises is what the code does."""

import json
import re
from pathlib import Path
from typing import Any, get_args

import pytest

from gm_chat.planned import reading
from gm_chat.planned.budget import MAX_GLOBAL_ROUNDS, PLANNER_ROUNDS, SUBTREE_ROUNDS, SYNTHESIS_ROUNDS, RoundBudget
from gm_chat.planned.config import planned_chat_settings
from gm_chat.planned.models import CALCULATION_OPERATIONS, RoutingFeature, TerminalReason
from gm_chat.planned.validation import MAX_CHILDREN_PER_ROOT, MAX_ID_CHARACTERS, MAX_ROOTS, validate_plan
from gm_chat.planned_audit import PLANNED_FIELDS
from gm_chat.settings import REQUIRED_ROLES, build_settings
from gm_chat.settings.sources import Source

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "planned.md").read_text()
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", TEXT, re.DOTALL)


def test_the_examples_of_settings_are_valid() -> None:
    profiles = []
    for code in (code for language, code in BLOCKS if language == "python"):
        names: dict[str, Any] = {}
        exec(code, names)  # noqa: S102 - our own document
        chat = names["GM_CHAT"]
        settings = build_settings([Source("GM_CHAT", {**chat, "planned": {**chat["planned"], "enabled": True}})])
        profiles.append(set(planned_chat_settings(settings).profiles))
    assert profiles == [{"default"}, {"small", "large"}]


def test_the_example_of_a_plan_is_valid() -> None:
    assert len(validate_plan(json.loads(next(code for language, code in BLOCKS if language == "json"))).tasks) == 1


@pytest.mark.parametrize(
    "word",
    [
        *REQUIRED_ROLES,
        *CALCULATION_OPERATIONS,
        *get_args(RoutingFeature),
        *get_args(TerminalReason),
        *(f"planned_{name}" for name in PLANNED_FIELDS),
    ],
)
def test_every_word_is_explained(word: str) -> None:
    assert f"`{word}`" in TEXT


def test_the_numbers_are_those_of_the_code() -> None:
    planned = planned_chat_settings(build_settings([]))
    for promise in (
        f"| planning | {PLANNER_ROUNDS}:",
        f"| a root task with its children | {SUBTREE_ROUNDS} |",
        f"| the answer | {SYNTHESIS_ROUNDS}:",
        f"| all together | {RoundBudget([]).global_limit} + 13 for each root task, at most {MAX_GLOBAL_ROUNDS} |",
        f"`planned.evidence_timeout_seconds` ({planned.evidence_timeout_seconds:g})",
        f"`planned.synthesis_timeout_seconds` ({planned.synthesis_timeout_seconds:g})",
        f"{reading.MAX_CHARACTERS:,} characters, {reading.MAX_VALUES:,} values, {reading.MAX_DEPTH} levels",
        f"ids of {MAX_ID_CHARACTERS} characters",
    ):
        assert promise in TEXT
    assert (MAX_ROOTS, MAX_CHILDREN_PER_ROOT) == (6, 2)
    assert RoundBudget(["a"]).global_limit - RoundBudget([]).global_limit == 13
