"""The public names of the specification: that they exist, and take what they are documented to take.

``tests/data/public_api.json`` lists each name with its parameters, fields and members; where the specification leaves
them out, as the system that gm-chat re-creates has them. What is more than documented must be optional.
"""

import dataclasses
import importlib
import inspect
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import UnionType
from typing import Any, get_args

import pytest
from django.dispatch import Signal

API: dict[str, dict[str, Any]] = json.loads((Path(__file__).parent / "data" / "public_api.json").read_text())
SHARED = Path(os.environ.get("GM_CHAT_SHARED") or Path(__file__).resolve().parents[1].parent / "shared")
OPTIONAL_KINDS = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}


def look_up(name: str) -> Any:
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(module), attribute)


def check_parameters(documented: Sequence[Mapping[str, Any]], function: Any) -> None:
    try:
        actual = [item for item in inspect.signature(function).parameters.values() if item.name != "self"]
    except ValueError:  # an exception without an __init__ of its own takes anything
        assert issubclass(function, BaseException)
        return
    for item, parameter in zip(documented, actual, strict=False):
        assert item["name"] == parameter.name
        assert item["kind"] == parameter.kind.name.lower()
        check_default(item, parameter.default, parameter.empty)
    assert len(actual) >= len(documented), f"missing: {documented[len(actual) :]}"
    for parameter in actual[len(documented) :]:
        assert parameter.default is not parameter.empty or parameter.kind in OPTIONAL_KINDS, parameter


def check_fields(documented: Sequence[Mapping[str, Any]], kind: type[Any]) -> None:
    actual = dataclasses.fields(kind)
    assert [item["name"] for item in documented] == [field.name for field in actual[: len(documented)]]
    for item, field in zip(documented, actual, strict=False):
        if field.default_factory is dataclasses.MISSING:
            check_default(item, field.default, dataclasses.MISSING)
    for field in actual[len(documented) :]:
        assert field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING, field


def check_default(item: Mapping[str, Any], default: Any, missing: Any) -> None:
    if "default" in item:
        assert plain(default) == item["default"], item["name"]
    elif "optional" in item:
        assert default is not missing, item["name"]


def check_members(documented: Mapping[str, Mapping[str, Any]], kind: type[Any]) -> None:
    for name, item in documented.items():
        static = inspect.getattr_static(kind, name)
        match item["kind"]:
            case "property":
                assert isinstance(static, property), name
            case "attribute":
                check_default({**item, "name": name}, getattr(kind, name), missing=None)
            case "classmethod":
                assert isinstance(static, classmethod), name
                check_parameters(item["parameters"], getattr(kind, name))
            case "method":
                check_parameters(item["parameters"], static)


def plain(value: Any) -> Any:
    match value:
        case tuple():
            return list(value)
        case Mapping():
            return dict(value)
        case _:
            return value


@pytest.mark.parametrize("name", API)
def test_the_name_is_as_documented(name: str) -> None:
    documented, found = API[name], look_up(name)
    match documented["kind"]:
        case "function":
            check_parameters(documented["parameters"], found)
            assert inspect.isasyncgenfunction(found) == (documented["async"] == "generator")
            assert inspect.iscoroutinefunction(found) == (documented["async"] is True)
        case "literal":
            assert list(get_args(found)) == documented["values"]
        case "value":
            assert plain(found) == documented["value"]
        case "union":
            assert isinstance(found, UnionType)
            assert [item.__name__ for item in get_args(found)] == documented["members"]
        case "signal":
            assert isinstance(found, Signal)
        case kind:
            assert isinstance(found, type)
            assert found.__name__ == documented.get("alias_of", name.rpartition(".")[2])
            if kind == "exception":
                assert documented["bases"][0] in [base.__name__ for base in found.__mro__]
            if kind == "dataclass":
                check_fields(documented["fields"], found)
            elif "parameters" in documented:
                check_parameters(documented["parameters"], found)
            check_members(documented.get("members", {}), found)


def test_every_name_of_the_specification_is_listed() -> None:
    names = SHARED / "spec" / "names.txt"
    if not names.exists():
        if "shared" in os.environ.get("GM_CHAT_REQUIRE", "").split(","):
            pytest.fail(f"GM_CHAT_REQUIRE names shared, but there is no {names}")
        pytest.skip(f"there is no {names}; set GM_CHAT_SHARED")
    assert sorted(API) == sorted(names.read_text().split())
    assert len(API) == 102
