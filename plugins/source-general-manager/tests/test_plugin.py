"""The plugin as the host loads it: its contract, its settings, and where it has nothing to do."""

from __future__ import annotations

import pytest
from gm_chat_source_general_manager import plugin

from gm_chat.testing import make_host
from gm_chat.testing.hook_contracts import ManagerSourcesContract, SystemChecksContract


class TestManagerSources(ManagerSourcesContract):
    plugin = plugin
    name = "general_manager"


class TestSystemChecks(SystemChecksContract):
    plugin = plugin
    name = "general_manager"


def test_without_the_app_there_is_no_source(settings: pytest.FixtureRequest) -> None:
    assert len(make_host(general_manager=plugin).manager_sources) == 1
    settings.INSTALLED_APPS = [name for name in settings.INSTALLED_APPS if name != "general_manager"]  # type: ignore[attr-defined]
    assert make_host(general_manager=plugin).manager_sources == ()
    assert make_host(general_manager=plugin).system_checks() == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"managers": {"Part": {"nmae": "X"}}}, "managers.Part.nmae"),
        ({"managers": {"Part": {"fields": "all"}}}, "managers.Part.fields"),
        ({"max_rows": 0}, "greater than or equal to 1"),
        ({"max_row": 5}, "unknown key 'max_row'. Did you mean 'max_rows'?"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, object], message: str) -> None:
    host = make_host({"general_manager": plugin}, options={"general_manager": options}, strict=False)
    assert host.manager_sources == ()
    assert message in host.problems[0].message
