from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, field_validator

from gm_chat.host.options import read_options
from gm_chat.plugin import PluginConfigurationError, hookimpl
from gm_chat.testing import make_host

SECRET = "hunter2-and-more"


@dataclass(frozen=True)
class DataOptions:
    api_key: str
    retries: int = 3

    def __post_init__(self) -> None:
        if self.retries < 0:
            raise ValueError(f"retries must not be negative, got {self}")


class ModelOptions(BaseModel):
    model_config = ConfigDict(extra="forbid")

    api_key: str
    retries: int = 3
    nested: dict[str, int] = {}

    @field_validator("api_key")
    @classmethod
    def refuse_short(cls, value: str) -> str:
        if len(value) > 5:
            raise ValueError(f"the key {value!r} is wrong")
        return value


@pytest.mark.parametrize("options", [DataOptions, ModelOptions])
def test_options_are_made_by_the_plugin(options: Any) -> None:
    made = read_options(SimpleNamespace(Options=options), {"api_key": "abc"})
    assert isinstance(made, options)
    assert (made.api_key, made.retries) == ("abc", 3)


def test_without_options_the_mapping_arrives_with_its_secrets_masked() -> None:
    made = read_options(SimpleNamespace(), {"api_key": SECRET, "city": "Ulm"})
    assert made["api_key"] == SECRET
    assert SECRET not in repr(made)


@pytest.mark.parametrize(
    ("options", "raw", "message"),
    [
        (DataOptions, {"api_key": SECRET, "retries": -1}, "retries must not be negative"),
        (DataOptions, {"retries": 1}, "missing 1 required positional argument: 'api_key'"),
        (DataOptions, {"api_key": SECRET, "retires": 1}, "unknown key 'retires'. Did you mean 'retries'?"),
        (ModelOptions, {"api_key": SECRET}, "api_key: Value error, the key <hidden> is wrong"),
        (ModelOptions, {"api_key": "x", "retries": SECRET}, "retries: Input should be a valid integer"),
        (ModelOptions, {"api_key": "x", "nested": {"a": SECRET}}, "nested.a: Input should be"),
        (ModelOptions, {"api_key": "x", "zzz": SECRET}, "unknown key 'zzz'. Known: api_key, nested, retries."),
        (None, [SECRET], "must be a mapping, not a list"),
        (None, {1: SECRET}, "the key 1 of its settings is not a string"),
    ],
)
def test_errors_name_keys_and_never_values(options: Any, raw: Any, message: str) -> None:
    plugin = SimpleNamespace(Options=options) if options else SimpleNamespace()
    with pytest.raises(PluginConfigurationError) as caught:
        read_options(plugin, raw)
    assert message in str(caught.value)
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_a_validator_that_exits_is_an_error_too() -> None:
    def options(**_: Any) -> None:
        raise SystemExit(SECRET)

    with pytest.raises(PluginConfigurationError, match="SystemExit: <hidden>"):
        read_options(SimpleNamespace(Options=options), {"dsn": SECRET})


def test_a_callable_without_a_signature_judges_the_keys_itself() -> None:
    assert read_options(SimpleNamespace(Options=dict), {"any": 1}) == {"any": 1}


class WithOptions:
    Options = DataOptions

    @hookimpl
    def gm_chat_eval_datasets(self, options: DataOptions) -> list[str]:
        return [f"{options.retries}.yaml"]


def test_each_plugin_gets_its_own_options() -> None:
    host = make_host(
        one=WithOptions(),
        two=WithOptions(),
        options={"one": {"api_key": "k", "retries": 1}, "two": {"api_key": "k", "retries": 2}},
    )
    assert host.eval_datasets == ("1.yaml", "2.yaml")


def test_a_plugin_with_wrong_options_is_refused_by_name() -> None:
    host = make_host(one=WithOptions(), options={"one": {"api_key": SECRET, "retries": -1}}, strict=False)
    [problem] = host.problems
    assert host.plugins[0].state == "refused"
    assert problem.severity == "error"
    assert "plugins['one']" in str(problem)
    assert SECRET not in str(problem)
