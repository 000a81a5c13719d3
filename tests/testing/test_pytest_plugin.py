import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from django.contrib.auth.models import User

import gm_chat.testing
from gm_chat.host import PluginHost
from gm_chat.persistence.threads import run_db
from gm_chat.plugin import hookimpl

ROOT = Path(__file__).resolve().parents[2]


def test_the_fixture_builds_a_host(make_host: Callable[..., PluginHost]) -> None:
    plugin = ModuleType("acme")
    plugin.gm_chat_eval_datasets = hookimpl(lambda: ["cases.yaml"])  # type: ignore[attr-defined]  # a module made by hand
    assert make_host(acme=plugin).eval_datasets == ("cases.yaml",)


@pytest.mark.django_db
@pytest.mark.usefixtures("inline_database")
def test_database_work_sees_the_test_s_own_transaction() -> None:
    from asgiref.sync import async_to_sync

    User.objects.create(username="only-in-this-transaction")
    assert async_to_sync(run_db)(User.objects.filter(username="only-in-this-transaction").count) == 1


def test_every_name_of_the_package_is_found_and_no_other() -> None:
    for name in gm_chat.testing.__all__:
        assert getattr(gm_chat.testing, name).__name__ == name
    with pytest.raises(AttributeError, match="no attribute 'make_hoist'"):
        gm_chat.testing.make_hoist  # noqa: B018 - the access is the test


def test_pytest_gets_nothing_heavy_from_it() -> None:
    code = (
        "import sys, gm_chat.testing.pytest_plugin;"
        "print(sorted({name.partition('.')[0] for name in sys.modules}"
        " & {'django', 'pydantic', 'pluggy_never', 'graphql', 'httpx', 'openai', 'ollama'}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[]\n"
