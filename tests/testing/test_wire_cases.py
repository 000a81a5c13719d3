"""The tables of wire cases, as data: what adapters make of them is tested where the adapters are."""

from __future__ import annotations

from pathlib import Path

import pytest

import gm_chat.testing.wire_cases as tables
from gm_chat.testing.wire_cases import FORMATS, KINDS, WireCase, wire_cases


@pytest.mark.parametrize("wire_format", FORMATS)
def test_names_are_unique_and_of_a_kind(wire_format: str) -> None:
    names = [case.name for case in wire_cases(wire_format)]
    assert len(set(names)) == len(names)
    assert {name.partition(":")[0] for name in names} <= set(KINDS)


@pytest.mark.parametrize("wire_format", FORMATS)
def test_a_case_of_a_failure_expects_nothing_else(wire_format: str) -> None:
    for case in wire_cases(wire_format):
        assert case.kind.endswith((".", "?"))
        assert bool(case.failure) or case.status < 400
        assert not (case.failure and (case.calls or case.errors or case.returns)), case.name
        assert len(case.errors) in (0, len(case.calls)), case.name


def test_every_kind_has_a_case() -> None:
    assert {case.name.partition(":")[0] for name in FORMATS for case in wire_cases(name)} == set(KINDS)


def test_every_format_has_what_every_format_can_have() -> None:
    kinds = [{case.name.partition(":")[0] for case in wire_cases(name)} for name in FORMATS]
    everywhere = {kind for kind in KINDS if all(kind in those for those in kinds)}
    assert everywhere >= {
        "no-end", "page", "empty-body", "broken-json", "large-event", "line-separators", "no-id", "repeated-id",
        "nameless-call", "text-and-call", "call-as-text", "no-arguments", "cut-off", "stop-after-calls",
        "unknown-reason", "length-before-text", "error-first", "error-in-stream", "retry-after-seconds",
        "retry-after-date", "retry-after-rubbish", "overloaded", "too-long", "usage-missing", "usage-null",
        "usage-details", "null-content", "wrong-type", "thinking",
    }  # fmt: skip


def test_a_format_that_nobody_knows() -> None:
    with pytest.raises(ValueError, match="did you mean 'openai-sse'"):
        wire_cases("openai")
    with pytest.raises(ValueError, match="there are openai-sse, anthropic-sse"):
        wire_cases("morse")


def test_a_case_of_no_kind() -> None:
    with pytest.raises(ValueError, match="'nonsense: 2' is of no kind"):
        WireCase(name="nonsense: 2", body=b"")


def test_each_table_is_a_module_of_its_own() -> None:
    files = {path.stem for path in Path(str(tables.__file__)).parent.glob("*.py")}
    assert files == {"__init__", "base", "kinds", *FORMATS.values()}
