"""Rules of the layout that no linter states: module and function length, names, and what may not be in the tree."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
MAX_MODULE_LINES = 400
MAX_FUNCTION_LINES = 60


def sources() -> list[Path]:
    files = [*ROOT.glob("gm_chat/**/*.py"), *ROOT.glob("plugins/*/src/**/*.py")]
    return sorted(path for path in files if "migrations" not in path.parts)


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(ROOT)))
def test_modules_and_functions_stay_readable(path: Path) -> None:
    text = path.read_text()
    assert len(text.splitlines()) <= MAX_MODULE_LINES
    for node in functions(ast.parse(text)):
        assert node.end_lineno is not None
        length = node.end_lineno - node.lineno + 1
        assert length <= MAX_FUNCTION_LINES, f"{node.name} in line {node.lineno} has {length} lines"


def test_no_module_is_called_utils() -> None:
    assert [path for path in sources() if path.stem in {"utils", "helpers", "misc"}] == []


def test_every_plugin_carries_the_core_s_version() -> None:
    import tomllib

    import gm_chat

    for path in ROOT.glob("plugins/*/pyproject.toml"):
        project = tomllib.loads(path.read_text())["project"]
        assert project["name"] == f"gm-chat-{path.parent.name}"
        assert project["version"] == gm_chat.__version__
