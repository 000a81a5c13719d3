"""The command ``gm-chat``: so far it knows ``gm-chat demo``, which is ``python -m gm_chat.demo`` too."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gm_chat import __version__
from gm_chat.demo.banner import banner
from gm_chat.demo.choice import Choice, choose, installed_plugins, ollama_model
from gm_chat.demo.project import DATABASE, demo_settings, set_up
from gm_chat.demo.serve import PortTakenError, bind, is_local, serve, url_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

__all__ = ["main", "parser"]

DEFAULT_PORT: Final = 8000
DEFAULT_DATA: Final = Path(".demo")


def parser() -> argparse.ArgumentParser:
    """Describe the command line."""
    top = argparse.ArgumentParser(prog="gm-chat", description="Ask a Django application's data in plain language.")
    top.add_argument("--version", action="version", version=f"gm-chat {__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    demo = commands.add_parser(
        "demo",
        help="serve a machine builder's data and a chat over it",
        description="Serve a ready project: a machine builder's data, four users, and a chat over it.",
    )
    demo.add_argument(
        "--provider",
        default="auto",
        help="auto (Ollama if it runs here, else OPENAI_API_KEY, else offline), offline, openai, ollama, "
        "or any other installed provider's name (default: %(default)s)",
    )
    demo.add_argument("--base-url", metavar="URL", help="the provider's address, e.g. http://127.0.0.1:8080/v1")
    demo.add_argument("--model", metavar="NAME", help="the model to ask for")
    demo.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    demo.add_argument(
        "--port", type=int, default=DEFAULT_PORT, help="port to listen on; 0 takes a free one (default: %(default)s)"
    )
    demo.add_argument("--data", type=Path, metavar="DIR", help=f"folder of the database (default: {DEFAULT_DATA})")
    demo.add_argument("--reset", action="store_true", help="build the data anew, without the conversations")
    demo.add_argument(
        "--hostile", action="store_true", help="add records that try to talk the model into changes and leaks"
    )
    demo.add_argument(
        "--check",
        action="store_true",
        help="ask ten questions with known answers on a free port (without --data: of a new database), print them, "
        "exit 1 if one is wrong; auto means offline here",
    )
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status: 0 fine, 1 a failure that was explained, 2 a wrong command line."""
    arguments = parser().parse_args(argv)
    try:
        import uvicorn  # noqa: F401 - asked for early, so that nothing is built in vain
        from rich.console import Console  # in the extra "demo", like uvicorn; --help needs neither
    except ImportError as error:
        sys.stderr.write(f"gm-chat demo: {error.name} is not installed: pip install 'gm-chat[demo]'\n")
        return 1
    console = Console(highlight=False, markup=False, soft_wrap=True)
    try:
        if arguments.check:
            return _check(arguments, console)
        return _serve(arguments, console)
    except KeyboardInterrupt:
        return 130
    except (PortTakenError, OSError) as error:
        sys.stderr.write(f"gm-chat demo: {error}\n")
        return 1


def _serve(arguments: argparse.Namespace, console: Console) -> int:
    choice = _choose(arguments, arguments.provider)
    folder = (arguments.data or DEFAULT_DATA).resolve()
    with bind(arguments.host, arguments.port) as listener:
        folder.mkdir(parents=True, exist_ok=True)
        url, exposed = url_of(listener), not is_local(listener)
        # What the page repeats names no folder of this machine.
        shown = banner(choice, url, Path("cookies.txt"), exposed=exposed)
        if not _prepare(choice, folder, console, host=arguments.host, text=shown, reset=arguments.reset):
            return 1
        if arguments.hostile:
            from gm_chat.demo.hostile import FIRST_ID, plant

            console.print(f"{plant()} hostile records are among the data, with ids from {FIRST_ID} on.")
        with suppress(KeyboardInterrupt):  # the way to stop it
            console.print(banner(choice, url, folder / "cookies.txt", exposed=exposed))
            serve(listener)
    console.print("Stopped.")
    return 0


def _check(arguments: argparse.Namespace, console: Console) -> int:
    choice = _choose(arguments, "offline" if arguments.provider == "auto" else arguments.provider)
    with tempfile.TemporaryDirectory(prefix="gm-chat-demo-") as temporary, bind("127.0.0.1", 0) as listener:
        folder = (arguments.data or Path(temporary)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        if not _prepare(choice, folder, console, reset=arguments.reset):
            return 1
        # Needs the models, hence Django's settings.
        from gm_chat.demo.check import run_check

        return run_check(listener, choice, console)


def _choose(arguments: argparse.Namespace, provider: str) -> Choice:
    return choose(
        provider,
        base_url=arguments.base_url,
        model=arguments.model,
        environment=os.environ,
        plugins=installed_plugins(),
        find_ollama_model=ollama_model,
    )


def _prepare(
    choice: Choice, folder: Path, console: Console, *, host: str = "127.0.0.1", text: str = "", reset: bool = False
) -> bool:
    """Start Django, report what its checks find, and see to the database. False if the demo cannot run."""
    database = folder / DATABASE
    settings = demo_settings(database, choice, host=host)
    if aside := set_up({**settings, "DEMO_BANNER": text}):
        console.print(f"Ignored, as the demo brings its own settings: {', '.join(aside)}")
    # From here on the settings stand; what follows needs them, the models above all.
    from django.core import checks

    from gm_chat.demo.database import build, is_current, migrate
    from gm_chat.demo.progress import progress_bar

    findings = [finding for finding in checks.run_checks() if finding.level >= checks.ERROR]
    for finding in findings:
        console.print(f"{finding.id}: {finding.msg}" + (f"\n  {finding.hint}" if finding.hint else ""))
    if findings:
        return False
    if is_current(database) and not reset:
        migrate()
        return True
    started = time.monotonic()
    with progress_bar(console, "Building the demo's data") as progress:
        rows = build(database, progress)
    console.print(f"Built {rows:,} rows in {time.monotonic() - started:.1f} s: {database}")
    return True
