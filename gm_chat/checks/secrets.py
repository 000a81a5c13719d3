"""Findings about keys in settings files: a key that version control knows is known to whoever can read the repository.

The files are read, never imported. What comes from elsewhere, such as ``os.environ["KEY"]``, is no literal and is fine.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Final

from django.core import checks

from gm_chat.audit import DEFAULT_REDACT_FIELDS
from gm_chat.host.problems import Failed, attempt
from gm_chat.redaction import is_secret_key, redact_text

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["secret_findings"]

_GIT_SECONDS: Final = 2.0
_SHORTEST: Final = 8
"""Characters; what is shorter, such as ``""`` or ``"none"``, is a placeholder."""

_LARGEST: Final = 1_000_000


def secret_findings() -> Iterator[checks.CheckMessage]:
    """Name each line of a tracked settings file that gives a secret of the chat as a literal. Never quotes one."""
    for path in _settings_files():
        lines = attempt(lambda path=path: sorted(_lines_with_secrets(path), key=itemgetter(1)))  # type: ignore[misc]  # bound at once
        if isinstance(lines, Failed) or not lines or not _is_tracked(path):
            continue
        for name, line in lines:
            variable = f"GM_CHAT_PROVIDER_CONFIG__{name.upper()}" if name.isidentifier() else "an environment variable"
            yield checks.Warning(
                f"{path}, line {line}: the chat's {name!r} is written into a file that is under version control.",
                hint=f"Replace the key, for it is known now, and give the new one in {variable}.",
                id="gm_chat.W021",
            )


def _settings_files() -> list[Path]:
    """The settings module and the modules of its package that it may be put together from."""
    name = os.environ.get("DJANGO_SETTINGS_MODULE", "")
    module = sys.modules.get(name)
    origin = getattr(module, "__file__", None)
    if origin is None:
        return []
    own = Path(origin)
    package = name.rpartition(".")[0] + "."
    beside = (
        getattr(other, "__file__", None)
        for key, other in sorted(sys.modules.items())
        if key.startswith(package) and "settings" in key.removeprefix(package)
    )
    return list(dict.fromkeys([own, *(Path(file) for file in beside if file)]))


def _lines_with_secrets(path: Path) -> Iterator[tuple[str, int]]:
    """Each secret's name and line: what stands in ``provider_config``, in profiles or in plugins' options."""
    if path.suffix != ".py" or path.stat().st_size > _LARGEST:
        return
    for node in ast.walk(ast.parse(path.read_bytes())):
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            continue
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            match target, node.value:
                case ast.Name(id=name), ast.Constant(value=str(text)) if _looks_secret(text):
                    yield name, node.value.lineno
                case ast.Subscript(slice=ast.Constant(value=str(name))), ast.Constant(value=str(text)):
                    if _is_ours(target) and _is_secret(name, text):
                        yield name, node.value.lineno
                case _, ast.Dict() if _is_ours(target):
                    yield from _literals(node.value)


def _is_ours(target: ast.expr) -> bool:
    names = [part.id for part in ast.walk(target) if isinstance(part, ast.Name)]
    return any("CHAT" in name or name == "GENERAL_MANAGER" for name in names)


def _literals(tree: ast.Dict) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                match key, value:
                    case ast.Constant(value=str(name)), ast.Constant(value=str(text)) if _is_secret(name, text):
                        yield name, value.lineno


def _is_secret(name: str, text: str) -> bool:
    return _looks_secret(text) or (is_secret_key(name, DEFAULT_REDACT_FIELDS) and len(text) >= _SHORTEST)


def _looks_secret(text: str) -> bool:
    return redact_text(text, DEFAULT_REDACT_FIELDS) != text


def _is_tracked(path: Path) -> bool:
    """Whether git knows the file. Without git, outside a repository, or if git takes its time: no."""
    try:
        done = subprocess.run(  # noqa: S603 - an argument list, no shell
            ["git", "ls-files", "--error-unmatch", "--", path.name],  # noqa: S607 - whichever git the operator uses
            cwd=path.parent,
            capture_output=True,
            timeout=_GIT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0
