from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

from gm_chat.engine.prompt import system_prompt

NOW = datetime(2026, 11, 29, 23, 30, tzinfo=timezone(timedelta(hours=2), "EET"))


def test_parts_come_in_order_and_blank_ones_leave_no_gap() -> None:
    prompt = system_prompt(project="  Talk like a clerk.\n", sections=["", "One.", "Two."], now=NOW, with_tools=True)
    built_in, *others = prompt.split("\n\n")
    assert built_in.startswith("You answer questions")
    assert others == ["Talk like a clerk.", "One.", "Two."]


def test_the_day_and_the_zone_are_given_but_no_time() -> None:
    prompt = system_prompt(project="", sections=(), now=NOW, with_tools=True)
    assert "Today is Sunday, 2026-11-29 (time zone EET, UTC+02:00)." in prompt
    assert "23:30" not in prompt
    assert "UTC+00:00" in system_prompt(project="", sections=(), now=NOW.astimezone(UTC), with_tools=True)


def test_a_model_without_tools_is_not_told_to_call_any() -> None:
    prompt = system_prompt(project="", sections=(), now=NOW, with_tools=False)
    assert "no access to the data" in prompt
    assert "calling the tools" not in prompt


def test_it_stays_short_enough_for_a_small_model() -> None:
    assert len(system_prompt(project="", sections=(), now=NOW, with_tools=True)) < 1200
