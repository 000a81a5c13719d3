"""SECURITY.md names a test for each mechanism, and each of them exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "SECURITY.md").read_text("utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in TEXT.partition("## Who can do what")[2].partition("\n## ")[0].splitlines()
    if line.startswith("|")
][2:]


def test_each_row_has_a_proof() -> None:
    assert len(ROWS) >= 20
    assert all(len(row) == 4 and re.search(r"`tests/", row[3]) for row in ROWS)


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`(tests/[^`]+)`", TEXT))))
def test_a_test_that_is_named_exists(name: str) -> None:
    path, _, function = name.partition("::")
    tree = ast.parse((ROOT / path).read_text("utf-8"))
    found = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    assert not function or function in found
