from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING, cast

from gm_chat.engine.prompt import data_outline, data_overview, manager_outline, system_prompt
from gm_chat.managers.api import FieldInfo, ManagerInfo, ManagerView, RelationInfo

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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


class View:
    """Managers by name, of which the first ``hits`` fit every question."""

    def __init__(self, *infos: ManagerInfo, hits: int = 0) -> None:
        self.infos = infos
        self.hits = hits

    def __iter__(self) -> Iterator[ManagerInfo]:
        return iter(self.infos)

    def get(self, name: str) -> ManagerInfo | None:
        return next((info for info in self.infos if info.name == name), None)

    def search(self, query: str, *, limit: int = 10) -> Sequence[ManagerInfo]:
        return self.infos[: min(self.hits, limit)]


def manager(number: int, *, fields: int = 1, relations: tuple[RelationInfo, ...] = ()) -> ManagerInfo:
    infos = tuple(FieldInfo(name=f"f{position}", type="string") for position in range(fields))
    return ManagerInfo(name=f"M{number}Manager", description="Things.", fields=infos, relations=relations)


def outline(view: View) -> list[str]:
    return data_outline(cast("ManagerView", view), "Which?").splitlines()


def test_few_managers_are_named_many_are_not() -> None:
    assert outline(View()) == []
    assert outline(View(manager(1), manager(2))) == ["Managers: M1Manager, M2Manager."]
    assert outline(View(*map(manager, range(31)))) == []


def test_managers_that_fit_the_question_are_outlined_within_bounds() -> None:
    relations = tuple(
        RelationInfo(name=f"r{number}", target="M1Manager" if number else "HiddenManager", many=False)
        for number in range(20)
    )
    many = (manager(0, fields=99, relations=relations), *(manager(number, fields=9) for number in range(1, 40)))
    lines = outline(View(*many, hits=9))
    assert lines[0].startswith("These may fit the question")
    assert len(lines) == 4
    own, related = lines[1].split(", f29, ")
    assert own.startswith("- M0Manager: f0, f1, ")
    assert related.split(", ")[:5] == ["r1__f0", "r1__f1", "r1__f2", "r1__f3", "r2__f0"]
    assert related.endswith("r7__f3")
    assert lines[2] == "- M1Manager: f0, f1, f2, f3, f4, f5, f6, f7, f8"


def test_what_a_field_takes_is_told_where_its_name_does_not() -> None:
    fields = (
        FieldInfo(name="status", type="string", choices=(("draft", "In design"), ("out", "Released"))),
        FieldInfo(name="due", type="datetime"),
        FieldInfo(name="size", type="integer", choices=tuple((number, f"{number}") for number in range(99))),
        FieldInfo(name="kind", type="string", choices=(("a", "Other"), ("b", "other"))),
    )
    info = ManagerInfo(name="PartManager", description="Parts.", fields=fields)
    outline = manager_outline(info, cast("ManagerView", View(info)))
    assert outline == "- PartManager: status (In design|Released), due (date), size, kind (a|b)"


def test_the_overview_is_whole_or_none() -> None:
    few, many = View(manager(1), manager(2)), View(*(manager(number, fields=30) for number in range(30)))
    assert data_overview(cast("ManagerView", few)).splitlines()[1:] == ["- M1Manager: f0", "- M2Manager: f0"]
    assert data_overview(cast("ManagerView", many)) == data_overview(cast("ManagerView", View())) == ""


def test_the_overview_comes_last() -> None:
    prompt = system_prompt(project="Project.", sections=["Plugin."], now=NOW, with_tools=True, data="Managers: A.")
    assert prompt.endswith("Project.\n\nPlugin.\n\nManagers: A.")
