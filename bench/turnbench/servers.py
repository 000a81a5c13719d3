"""Starting the two servers, each in a process of its own, and the reference's virtual environment."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from turnbench.client import Address, HttpClient

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["REFERENCE", "Server", "reference_python", "running"]

REFERENCE: Final = ("GeneralManager==0.86.14", "channels>=4.3,<5", "uvicorn>=0.35", "websockets>=14")
"""What the reference's environment holds; it needs Python 3.12."""

STANDARD: Final = ("uvloop", "httptools")
"""What ``uvicorn[standard]`` brings, and most deployments run on."""

BENCH: Final = Path(__file__).resolve().parents[1]


@dataclass
class Server:
    """A running server and its users, of whom each measurement gets new ones: no conversation grows across two."""

    kind: str
    process: subprocess.Popen[str]
    about: dict[str, Any]
    _next: Iterator[str] = field(init=False)

    def __post_init__(self) -> None:
        self._next = itertools.cycle(self.about["sessions"])

    def users(self, number: int) -> list[Address]:
        """Take so many users that did not ask anything yet."""
        return [Address(self.about["port"], next(self._next), self.about["csrf"]) for _ in range(number)]

    def cpu_seconds(self) -> float:
        """The processor time that the server has used so far, all its threads together."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="ascii").rpartition(") ")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    async def probe(self, name: str) -> Any:
        """Ask the server about itself, see ``probes``."""
        client = HttpClient(Address(self.about["port"], "", ""))
        await client.open()
        try:
            status, body = await client.request("GET", f"/_bench/{name}")
        finally:
            await client.close()
        if status != 200:
            raise RuntimeError(f"the {self.kind} server's probe {name!r} failed: {body[:500]!r}")
        return json.loads(body)


@contextmanager
def running(
    kind: str,
    python: str,
    *,
    checkout: Path,
    users: int,
    summaries: bool = False,
    planned: bool = False,
    standard: bool = False,
) -> Iterator[Server]:
    """Serve while the block runs, on a new database; ``standard`` with uvloop and httptools."""
    command = [python, "-m", "turnbench.server", kind, "", "--users", str(users)]
    flags = {"--summaries": summaries, "--planned": planned, "--standard": standard}
    command += [flag for flag, wanted in flags.items() if wanted]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(BENCH), str(checkout)]), "PYTHONWARNINGS": "ignore"}
    environment.pop("DJANGO_SETTINGS_MODULE", None)
    with tempfile.TemporaryDirectory(prefix="turnbench-") as folder:
        command[4] = folder
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True)
        try:
            line = process.stdout.readline() if process.stdout else ""
            if not line:
                raise SystemExit(f"The {kind} server did not start: {' '.join(command)}")
            yield Server(kind, process, json.loads(line))
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def reference_python(folder: Path, base: str, *, standard: bool = False) -> str:
    """Return the interpreter of the reference's environment, made in ``folder`` unless it is there and complete."""
    wanted = (*REFERENCE, *STANDARD) if standard else REFERENCE
    python = folder / "bin" / "python"
    if not python.exists():
        print(f"Making the reference's environment in {folder} ...")
        make = shutil.which("uv")
        command = [make, "venv", "-q", "--python", base, str(folder)] if make else [base, "-m", "venv", str(folder)]
        subprocess.run(command, check=True)
    if not _is_complete(python, standard=standard):
        print(f"Installing {', '.join(wanted)} there ...")
        uv = shutil.which("uv")
        pip = [uv, "pip", "install", "-q", "-p", str(python)] if uv else [str(python), "-m", "pip", "install", "-q"]
        subprocess.run([*pip, *wanted], check=True)
    return str(python)


def _is_complete(python: Path, *, standard: bool) -> bool:
    wanted = REFERENCE[0].partition("==")
    modules = ("channels", "uvicorn", "websockets", *(STANDARD if standard else ()))
    program = (
        f"import importlib.metadata as m, {', '.join(modules)}; "
        f"raise SystemExit(m.version({wanted[0]!r}) != {wanted[2]!r})"
    )
    return subprocess.run([str(python), "-c", program], check=False, capture_output=True).returncode == 0
