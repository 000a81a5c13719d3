"""The table of wire cases, and the option of pytest that prints it."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

from gm_chat.testing.wire_cases import KINDS
from gm_chat.testing.wire_table import wire_table

if TYPE_CHECKING:
    from pathlib import Path

HERE = "plugins/acme/tests/test_contract.py"


def test_a_row_for_each_case_and_a_column_for_each_provider() -> None:
    table = wire_table(
        [
            (f"{HERE}::TestAcme::test_a_wire_case[page: said to be a stream]", "failed"),
            (f"{HERE}::TestAcme::test_a_wire_case[no-end]", "passed"),
            (f"{HERE}::TestBolt::test_a_wire_case[no-end]", "passed"),
            (f"{HERE}::TestBolt::test_a_wire_case[of-their-own]", "passed"),
            (f"{HERE}::TestBolt::test_a_page_is_incomplete", "passed"),
        ]
    )
    assert table == [
        "                             Acme     Bolt",
        f"no-end: {KINDS['no-end']}",
        "  no-end                     passed   passed",
        f"page: {KINDS['page']}",
        "  page: said to be a stream  failed   -",
        "  of-their-own               -        passed",
    ]


def test_without_cases_there_is_no_table() -> None:
    assert wire_table([(f"{HERE}::TestAcme::test_a_page_is_incomplete", "passed")]) == []


def test_the_option(tmp_path: Path) -> None:
    test = "import pytest\n\nclass TestAcme:\n    @pytest.mark.parametrize('case', ['no-end', 'page'])\n"
    (tmp_path / "test_acme.py").write_text(f"{test}    def test_a_wire_case(self, case): assert case == 'page'\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", ".", "--wire-table"]
    environment = {key: value for key, value in os.environ.items() if key != "DJANGO_SETTINGS_MODULE"}

    def run(*further: str) -> str:
        arguments = [*command, *further, "test_acme.py"]
        return subprocess.run(
            arguments, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        ).stdout

    table = run()
    assert "\n  no-end  failed\n" in table
    assert "\n  page    passed\n" in table
    assert "no wire case was run" in run("-k", "none")
