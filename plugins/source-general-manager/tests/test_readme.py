"""The page says what is so."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

from asking import gm_source
from general_manager.permission import permission_functions
from gm_chat_source_general_manager import ManagerOptions, Options

PAGE = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def test_the_settings_work(db: None) -> None:
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    found: dict[str, Any] = {}
    exec(compile(block, "README.md", "exec"), found)  # noqa: S102 - it is our own page
    infos = {info.name: info for info in gm_source(**found["GM_CHAT"]["plugins"]["general_manager"]).describe()}
    assert infos["Part"].aliases == ("component",)
    assert set(found["GM_CHAT"]["allowed_mutations"]) < {item.name for item in infos["Part"].mutations}


def test_the_tables_name_everything() -> None:
    assert all(f"| `{field.name}` |" in PAGE for field in dataclasses.fields(Options))
    assert all(f"`{field.name}`" in PAGE for field in dataclasses.fields(ManagerOptions))
    theirs = {name for name, entry in permission_functions.items() if _is_theirs(entry)}
    assert theirs
    assert all(f"`{name}`" in PAGE for name in theirs), theirs


def _is_theirs(entry: Any) -> bool:
    return str(getattr(entry["permission_method"], "__module__", "")).startswith("general_manager.")
