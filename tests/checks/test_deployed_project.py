"""``manage.py check --deploy`` over a project full of mistakes: each is named with what mends it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from testproject.deployed import KEY, MISTAKES, DeployedProject

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return DeployedProject(tmp_path_factory.mktemp("project")).check("--deploy")


@pytest.mark.parametrize("mistake", MISTAKES)
def test_each_mistake_is_named_and_mended_by_its_hint(mistake: str, found: dict[str, str], tmp_path: Path) -> None:
    id, line, how = MISTAKES[mistake]
    assert line in found[id].partition("HINT: ")[2]
    project = DeployedProject(tmp_path)
    project.type(line, how)
    assert project.check("--deploy").keys() == found.keys() - {id}


def test_together_they_are_all_that_is_found(found: dict[str, str], tmp_path: Path) -> None:
    assert found.keys() == {id for id, _, _ in MISTAKES.values()}
    assert KEY not in repr(found)
    project = DeployedProject(tmp_path)
    for _, line, how in MISTAKES.values():
        project.type(line, how)
    assert project.check("--deploy") == {}
