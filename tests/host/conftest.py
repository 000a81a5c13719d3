"""Real distributions on disk: metadata, entry points and modules, found by importlib_metadata like installed ones."""

import importlib
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

Install = Callable[..., None]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on ``sys.path`` whose modules are forgotten afterwards."""
    folder = tmp_path / "site"
    folder.mkdir()
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(folder))
    yield folder
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", None) and str(folder) in str(sys.modules[name].__file__):
            del sys.modules[name]


@pytest.fixture
def install(site: Path) -> Install:
    """``install("acme-x", "1.2", "x", "acme_x", source)`` writes a distribution with one entry point."""

    def write(distribution: str, version: str, entry_point: str, module: str, source: str) -> None:
        info = site / f"{distribution.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")
        (info / "entry_points.txt").write_text(f"[gm_chat]\n{entry_point} = {module}\n")
        (site / f"{module}.py").write_text(textwrap.dedent(source))
        importlib.invalidate_caches()

    return write
