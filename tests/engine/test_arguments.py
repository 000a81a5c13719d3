from __future__ import annotations

from typing import Any

import pytest

from gm_chat.engine.arguments import mismatch

SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "integer"},
        "ratio": {"type": "number"},
        "tags": {"type": "array"},
        "where": {"type": ["object", "null"]},
        "exact": {"type": "boolean"},
        "free": {},
    },
    "required": ["city"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    "args",
    [
        {"city": "Ulm"},
        {"city": "Ulm", "days": 3, "ratio": 1, "tags": [], "where": None, "exact": False, "free": object()},
        {"city": "Ulm", "ratio": 0.5, "where": {}},
    ],
)
def test_fitting_arguments(args: dict[str, Any]) -> None:
    assert mismatch(SCHEMA, args) is None


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ({}, "the argument 'city' is missing"),
        ({"city": 7}, "the argument 'city' must be of type string, got 7"),
        ({"city": "Ulm", "days": True}, "the argument 'days' must be of type integer, got True"),
        ({"city": "Ulm", "days": "3"}, "the argument 'days' must be of type integer, got '3'"),
        ({"city": "Ulm", "where": []}, "the argument 'where' must be of type object or null, got []"),
        ({"city": "Ulm", "town": 1}, "there is no argument 'town'; allowed: city, days"),
    ],
)
def test_arguments_that_do_not_fit_are_named(args: dict[str, Any], words: str) -> None:
    assert (mismatch(SCHEMA, args) or "").startswith(words)


def test_further_arguments_pass_an_open_schema() -> None:
    assert mismatch({"type": "object"}, {"anything": 1}) is None
