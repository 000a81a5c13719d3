"""The format of evaluation datasets, and reading them: a YAML list of cases. ``docs/evals.md`` explains it to users.

Validation is strict: a misspelt key would otherwise be an expectation that nobody checks. A mistake names the file, the
case and the key.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, field_validator, model_validator

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable
    from pathlib import Path

__all__ = [
    "Case",
    "Contract",
    "Dataset",
    "DatasetError",
    "Expectations",
    "Hard",
    "ResultSet",
    "Strategy",
    "ToolCallPattern",
    "UserMessage",
    "load_dataset",
    "parse_dataset",
]

MAX_BYTES: Final = 5_000_000
"""Size of a dataset file; a longer one is not read."""


class DatasetError(ValueError):
    """A dataset cannot be used. The message names the file and, where it is known, the case and the key."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")


Text = Annotated[str, Field(min_length=1)]
Slug = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", max_length=120)]
# Lists become tuples here, so that a case is immutable although YAML has lists only.
Texts = Annotated[tuple[Text, ...], Field(strict=False)]
Alternatives = Annotated[tuple[Text, ...], Field(strict=False, min_length=1)]
Answers = Annotated[tuple[Text | Alternatives, ...], Field(strict=False)]


class UserMessage(_Part):
    """One message of the user; the messages of a case belong to one conversation."""

    user: Text


class ToolCallPattern(_Part):
    """A call that has to be made: its tool, and arguments of which each must occur, as far down as they go."""

    name: Text
    args_contain: dict[str, Any] = Field(default_factory=dict)


class ResultSet(_Part):
    """The rows that some tool result must consist of: those of a reference ``query`` (its arguments) or of ``sql``.

    Column names do not count, and the order of rows only if ``ordered``.
    """

    query: dict[str, Any] | None = None
    sql: Text | None = None
    ordered: bool = False

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.query is None) == (self.sql is None):
            raise ValueError("needs one of 'query' and 'sql', and not both")
        return self


class Hard(_Part):
    """What decides whether a case passes. All of it must hold; what is left out is not looked at."""

    required_tool_calls: Annotated[tuple[ToolCallPattern, ...], Field(strict=False)] = ()
    forbidden_tools: Texts = ()
    tool_order: Texts = ()
    results_contain: Texts = ()
    results_exclude: Texts = ()
    result_set: ResultSet | None = None
    answer_contains: Answers = ()
    """Each item must occur in the last answer; of an item that is a list, one of its texts."""
    answer_excludes: Texts = ()
    grounded: bool = True
    """Whether each number of the answer must come from the data or from the question."""
    confirmation: Literal["required", "none"] | None = None
    """Whether a mutation had to be put before the user, or none may have been."""


class Strategy(_Part):
    """How a good run gets there. It is reported, and fails no case."""

    max_rounds: Annotated[int, Field(ge=1)] | None = None
    max_tool_calls: Annotated[int, Field(ge=0)] | None = None
    preferred_tools: Texts = ()


class Contract(_Part):
    """The category of a case, for reports, and what it demands."""

    category: Text
    hard: Hard = Hard()
    strategy: Strategy = Strategy()


class Expectations(_Part):
    """What is expected of a case."""

    contract: Contract


class Case(_Part):
    """One conversation and what is expected of its end."""

    name: Slug
    description: str = ""
    tier: Annotated[int, Field(ge=1)] = 1
    tags: Texts = ()
    user: str | None = None
    """Who asks: a user name that the fixture or the project knows. ``None`` is the runner's own user."""
    conversation: Annotated[tuple[UserMessage, ...], Field(strict=False, min_length=1)]
    expectations: Expectations

    @field_validator("tags")
    @classmethod
    def _each_tag_once(cls, tags: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(tags)) < len(tags):
            raise ValueError("names a tag twice")
        return tags

    @property
    def hard(self) -> Hard:
        """What decides whether the case passes."""
        return self.expectations.contract.hard


@dataclass(frozen=True, slots=True)
class Dataset:
    """Cases in their order. ``sha256`` is of the file's bytes: equal hashes, equal questions."""

    name: str
    cases: tuple[Case, ...]
    sha256: str


def load_dataset(path: Path) -> Dataset:
    """Read a dataset file; its name without the suffix is the dataset's. Raises :class:`DatasetError`."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise DatasetError(f"{path}: cannot be read: {error.strerror or error}") from error
    return parse_dataset(content, name=path.stem, source=str(path))


def parse_dataset(content: bytes, *, name: str, source: str) -> Dataset:
    """Read a dataset from YAML in UTF-8. ``source`` stands in messages. Raises :class:`DatasetError`."""
    if len(content) > MAX_BYTES:
        raise DatasetError(f"{source}: is longer than {MAX_BYTES:,} bytes; split it")
    try:
        raw = yaml.load(content.decode(), _Loader)  # noqa: S506 (a SafeLoader)
    except (UnicodeDecodeError, yaml.YAMLError, RecursionError) as error:
        raise DatasetError(f"{source}: is no YAML: {error}") from error
    if not isinstance(raw, list) or not raw:
        raise DatasetError(f"{source}: must be a list of cases with at least one, not {type(raw).__name__}")
    cases = tuple(_case(item, number, source) for number, item in enumerate(raw, 1))
    _refuse_repeated(cases, source)
    return Dataset(name, cases, hashlib.sha256(content).hexdigest())


_CASE: Final = TypeAdapter(Case)


def _case(item: Any, number: int, source: str) -> Case:
    name = item.get("name") if isinstance(item, dict) else None
    where = f"{source}: case {number}" + (f" ({name!r})" if isinstance(name, str) else "")
    try:
        return _CASE.validate_python(item)
    except ValidationError as error:
        mistakes = "; ".join(f"{_key(fault['loc'])}: {fault['msg']}" for fault in error.errors())
        raise DatasetError(f"{where}: {mistakes}") from error


def _key(location: Iterable[int | str]) -> str:
    return ".".join(map(str, location)) or "the case"


def _refuse_repeated(cases: Iterable[Case], source: str) -> None:
    seen: set[str] = set()
    for number, case in enumerate(cases, 1):
        if case.name in seen:
            raise DatasetError(f"{source}: case {number} ({case.name!r}): name: another case has it already")
        seen.add(case.name)


class _Loader(yaml.SafeLoader):
    """YAML as data only, in which a key that stands twice is a mistake: PyYAML lets the last one win."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:  # noqa: FBT001, FBT002 (PyYAML's signature)
        keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        for key in keys:
            if keys.count(key) > 1 and key != "<<":
                raise yaml.constructor.ConstructorError(None, None, f"the key {key!r} stands twice", node.start_mark)
        return super().construct_mapping(node, deep=deep)
