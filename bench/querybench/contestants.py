"""Who takes part in the page, and the environment that each needs; those of the others are made on demand."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["OTHERS", "OURS", "Contestant", "python_of", "run"]

BENCH: Final = Path(__file__).resolve().parents[1]
DJANGO: Final = "django>=5.2,<5.3"
DRIVERS: Final = ("psycopg[binary]>=3.2", "pymysql>=1.1")


@dataclass(frozen=True)
class Contestant:
    """``module`` of ``pages`` is what is timed; ``needs`` are installed into the environment of that name."""

    name: str
    module: str
    apps: tuple[str, ...]
    environment: str = ""
    needs: tuple[str, ...] = ()
    python: tuple[int, int] | None = None
    share: int = 1
    """It gets the rounds divided by this: slow ones vary less."""


OURS: Final = Contestant("gm_chat", "ours", ("gm_chat",))
_GRAPHENE: Final = ("graphene-django>=3.2,<4", "graphene-django-optimizer>=0.10,<1")
_STRAWBERRY: Final = ("strawberry-graphql-django>=0.60,<1",)
OTHERS: Final = (
    Contestant("graphene-django + optimizer", "graphene", ("graphene_django",), "graphene", _GRAPHENE, share=4),
    Contestant("graphene-django alone", "graphene_plain", ("graphene_django",), "graphene", _GRAPHENE, share=8),
    Contestant(
        "strawberry-django + optimizer", "strawberry", ("strawberry_django",), "strawberry", _STRAWBERRY, share=4
    ),
    Contestant(
        "strawberry-django alone", "strawberry_plain", ("strawberry_django",), "strawberry", _STRAWBERRY, share=8
    ),
    Contestant(
        "GeneralManager 0.87.1",
        "general_manager",
        ("querybench.gm_project", "general_manager"),
        "general-manager",
        ("GeneralManager==0.87.1",),
        (3, 13),
        share=12,
    ),
)


def run(kind: str, python: str, request: Mapping[str, Any]) -> dict[str, Any]:
    """Run ``python -m querybench.<kind>`` on a request, in a process of its own; its answer."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(BENCH), str(BENCH.parent)])}
    environment["PYTHONWARNINGS"] = "ignore"
    environment.pop("DJANGO_SETTINGS_MODULE", None)
    if python != sys.executable:
        environment["PYTHONPATH"] = str(BENCH)  # the others' environments are none of ours
    done = subprocess.run(
        [python, "-m", f"querybench.{kind}"],
        check=False,
        capture_output=True,
        text=True,
        input=json.dumps(request),
        env=environment,
    )
    if done.returncode:
        raise RuntimeError(f"{python} -m querybench.{kind}:\n{done.stderr[-3000:]}")
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def python_of(contestant: Contestant, folder: Path) -> str | None:
    """The interpreter of a contestant's environment below ``folder``, made if it is not there.

    ``None`` where no interpreter is found to make it with.
    """
    if not contestant.environment:
        return sys.executable
    place = folder / contestant.environment
    python = place / "bin" / "python"
    wanted = [*contestant.needs, DJANGO, *DRIVERS]
    done = place / "installed.json"
    if done.exists() and json.loads(done.read_text(encoding="utf-8")) == wanted:
        return str(python)
    base = _interpreter(contestant.python)
    if base is None:
        return None
    print(f"Making {contestant.name}'s environment in {place} ...", flush=True)
    uv = shutil.which("uv")
    subprocess.run([uv, "venv", "-q", "--clear", "-p", base, place] if uv else [base, "-m", "venv", place], check=True)
    pip = [uv, "pip", "install", "-q", "-p", str(python)] if uv else [str(python), "-m", "pip", "install", "-q"]
    subprocess.run([*pip, *wanted], check=True)
    done.write_text(json.dumps(wanted), encoding="utf-8")
    return str(python)


def _interpreter(wanted: tuple[int, int] | None) -> str | None:
    """An interpreter of a version (by default our own): on the path, or among pyenv's."""
    if wanted is None or wanted == sys.version_info[:2]:
        return sys.executable
    name = ".".join(map(str, wanted))
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = [path for path in (shutil.which(f"python{name}"), *sorted(versions.glob(f"{name}.*/bin/python"))) if path]
    return next((str(path) for path in found if _runs(str(path))), None)


def _runs(python: str) -> bool:
    return subprocess.run([python, "-c", ""], check=False, capture_output=True).returncode == 0
