from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gm_chat.providers.arguments import CUT_OFF, decode_arguments

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.parametrize("raw", [None, "", " \n", "null", "{}", {}])
def test_no_arguments(raw) -> None:
    assert decode_arguments(raw) == ({}, None)


@given(st.dictionaries(st.text(), JSON, max_size=4))
def test_an_object_in_either_form(args) -> None:
    assert decode_arguments(args) == (args, None)
    assert decode_arguments(json.dumps(args)) == (args, None)
    assert decode_arguments(json.dumps(args), cut=True) == (args, None)


@given(st.dictionaries(st.text(), JSON, max_size=4), st.data())
def test_no_true_prefix_of_an_object_is_ever_run(args, data) -> None:
    text = json.dumps(args)
    prefix = text[: data.draw(st.integers(0, len(text) - 1))]
    assert decode_arguments(prefix, cut=True) == ({}, CUT_OFF)
    if prefix:
        assert decode_arguments(prefix)[1].startswith("not JSON: ")


@pytest.mark.parametrize("raw", ['{"id": 1, "id": 2}', '{"input": {"id": 1, "id": 1}}'])
def test_a_key_that_stands_twice_is_refused(raw: str) -> None:
    args, error = decode_arguments(raw)
    assert args == {}
    assert error is not None
    assert error.startswith("not JSON: the key 'id' stands twice")


@pytest.mark.parametrize("cut", [True, False])
@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        ("[1]", "an array"),
        ([1], "an array"),
        ('"x"', "a string"),
        ("7", "a number"),
        (7.5, "a number"),
        ("false", "a boolean"),
        (True, "a boolean"),
    ],
)
def test_what_is_no_object(raw, kind, cut) -> None:
    args, error = decode_arguments(raw, cut=cut)
    assert args == {}
    assert error.startswith(f"not a JSON object: the arguments are {kind};")


@pytest.mark.parametrize(
    "raw",
    [
        "{'a': 1}",
        '{"a": NaN}',
        '{"a": -Infinity}',
        "{}{}",
        '{"a": 1e999}',
        '{"a": -1e999}',
        '{"a": 1,}',
        '{"a": ' + "9" * 5000 + "}",
    ],
)
def test_what_python_or_javascript_would_read_but_json_has_not(raw) -> None:
    args, error = decode_arguments(raw)
    assert args == {}
    assert error.startswith("not JSON: ")


def test_nesting_without_end() -> None:
    assert decode_arguments('{"a":' * 100_000)[1].startswith("not JSON: it is nested too deeply")


def test_a_mapping_is_copied() -> None:
    given = {"a": 1}
    args, _ = decode_arguments(given)
    given["a"] = 2
    assert args == {"a": 1}
