"""A project on the way to production with ten mistakes in it, each of which ``manage.py check --deploy`` names.

The project is written to a folder and checked by ``manage.py`` in a process of its own, as an operator does it.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

__all__ = ["KEY", "MISTAKES", "DeployedProject", "free_port"]

KEY: Final = "sk-0123456789abcdefghij"

SETTINGS: Final = f"""\
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
SECRET_KEY = "of-no-use-to-anybody-0123456789-abcdefghijklmnopqrstuvwxyz"
ALLOWED_HOSTS = ["shop.example"]
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
ROOT_URLCONF = "site_project.urls"
ASGI_APPLICATION = "site_project.asgi.application"
INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "gm_chat",
    "members",
]
MIDDLEWARE = [
    "site_project.middleware.CompressionMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
]
DATABASES = {{"default": {{"ENGINE": "django.db.backends.sqlite3", "NAME": HERE / "db.sqlite3"}}}}
CACHES = {{"default": {{"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}}}
GM_CHAT = {{
    "enabled": True,
    "provider": "gm_chat.testing.ScriptedProvider",
    "provider_config": {{"api_key": "{KEY}"}},
    "allowed_mutations": ["updateMember"],
    "audit": {{"enabled": True, "level": "all"}},
    "enabled_plugins": ["acme"],  # not what the environment happens to have
}}
"""

FILES: Final[Mapping[str, str]] = {
    "manage.py": "import sys\nfrom django.core.management import execute_from_command_line\n"
    "execute_from_command_line(sys.argv)\n",
    "site_project/__init__.py": "",
    "site_project/settings.py": SETTINGS,
    "site_project/urls.py": "urlpatterns = []\n",
    "site_project/asgi.py": "from django.core.asgi import get_asgi_application\napplication = get_asgi_application()\n",
    "site_project/sinks.py": "def take(event):\n    pass\n",
    "site_project/middleware.py": """\
import gzip


class CompressionMiddleware:
    def __init__(self, get_response):
        self.get_response = get_response

    def __call__(self, request):
        response = self.get_response(request)
        if response.streaming:
            response.streaming_content = iter([gzip.compress(b"".join(response.streaming_content))])
            response["Content-Encoding"] = "gzip"
        return response
""",
    "members/__init__.py": "",
    "members/models.py": """\
from django.db import models


class Member(models.Model):
    name = models.CharField(max_length=80)
    password = models.CharField(max_length=128)
""",
    "members/chat_managers.py": """\
from gm_chat.managers import ModelManager
from members.models import Member


class MemberManager(ModelManager):
    chat_exposed = True
    model = Member
    fields = ["id", "name", "password"]
""",
    "acme_chat.py": "import a_module_that_nobody_has\n",
    "acme_chat-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: acme-chat\nVersion: 1.0\n",
    "acme_chat-1.0.dist-info/entry_points.txt": "[gm_chat]\nacme = acme_chat\n",
}

MISTAKES: Final[Mapping[str, tuple[str, str, tuple[str, str, str]]]] = {
    "a cache that cannot count": (
        "gm_chat.W008",
        (
            'CACHES["default"] = {"BACKEND": "django.core.cache.backends.redis.RedisCache", '
            '"LOCATION": "redis://127.0.0.1:6379"}'
        ),
        ("settings", "", ""),
    ),
    "no WAL": (
        "gm_chat.W005",
        (
            'DATABASES["default"]["OPTIONS"] = {"transaction_mode": "IMMEDIATE", "timeout": 20, '
            '"init_command": "PRAGMA journal_mode=WAL"}'
        ),
        ("settings", "", ""),
    ),
    "no ASGI route": ("gm_chat.W006", 'ASGI_APPLICATION = "gm_chat.asgi.application"', ("settings", "", "")),
    "compression before streaming": (
        "gm_chat.W007",
        "django.middleware.gzip.GZipMiddleware",
        ("replace", "site_project/settings.py", "site_project.middleware.CompressionMiddleware"),
    ),
    "an exposed password": (
        "gm_chat.W003",
        'Take "password" out of its fields',
        ("remove", "members/chat_managers.py", ', "password"'),
    ),
    "a key in tracked settings": (
        "gm_chat.W021",
        "GM_CHAT_PROVIDER_CONFIG__API_KEY",
        ("environment", "site_project/settings.py", f'"api_key": "{KEY}"'),
    ),
    "changes after reading, unasked": ("gm_chat.W024", 'GM_CHAT["taint_mutations"] = True', ("settings", "", "")),
    "no permission for visitors": (
        "gm_chat.W023",
        'GM_CHAT["permission"] = lambda user, scope: user.is_authenticated',
        ("settings", "", ""),
    ),
    "no audit sink": (
        "gm_chat.E011",
        'GM_CHAT["audit"]["logger"] = "dotted.path"',
        ("callable", "", "site_project.sinks.take"),
    ),
    "a broken plugin": ("gm_chat.E010", 'GM_CHAT["disabled_plugins"] = ["acme"]', ("settings", "", "")),
}
"""By mistake: the finding's id, the line that its hint says to type, and how a person would do what it says."""

_FINDING: Final = re.compile(r"^\S+ \((gm_chat\.\w+)\)(.*?)(?=^\S+ \(|^System check|\Z)", re.MULTILINE | re.DOTALL)


def free_port() -> int:
    """A port that nobody listens at now."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


class DeployedProject:
    """The project in a folder of its own, under version control."""

    def __init__(
        self,
        folder: Path,
        *,
        files: Mapping[str, str] = MappingProxyType({}),
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """``files`` replaces some or adds more; ``environment`` is what each command gets beside this process's."""
        self._folder = folder
        self._more = dict(environment)
        for name, text in {**FILES, **files}.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
        for command in (["init", "-q"], ["add", "."]):
            subprocess.run(["git", *command], cwd=folder, check=True)

    def check(self, *options: str) -> dict[str, str]:
        """What ``manage.py check`` says of the chat: each finding's text, hint included, by its id."""
        text = self.run("check", *options)
        return dict(_FINDING.findall(text))

    def run(self, *arguments: str, program: str = "manage.py") -> str:
        """Everything that a command of ``manage.py``, or another program, prints, to both streams."""
        done = subprocess.run(
            [sys.executable, program, *arguments],
            cwd=self._folder,
            env=self._environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout + done.stderr

    @contextmanager
    def serve(self, application: str, log: Path) -> Iterator[str]:
        """Serve an ASGI application of the project's by uvicorn, which writes to ``log``; gives its URL."""
        port = free_port()
        command = [sys.executable, "-m", "uvicorn", application, "--port", str(port), "--log-level", "warning"]
        with self.running(command, port, log):
            yield f"http://127.0.0.1:{port}"

    @contextmanager
    def running(self, command: Sequence[str], port: int, log: Path) -> Iterator[subprocess.Popen[bytes]]:
        """Run a server in the project's folder while the block lasts, which begins when it listens at the port."""
        with log.open("wb") as file:
            process = subprocess.Popen(command, cwd=self._folder, env=self._environment(), stderr=file)
        try:
            deadline = time.monotonic() + 30
            while True:
                with suppress(OSError):
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    break
                assert process.poll() is None, log.read_text()
                assert time.monotonic() < deadline, f"{command} did not start"
                time.sleep(0.05)
            yield process
        finally:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(10)
            process.kill()
            process.wait()

    def _environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("GM_CHAT_")}
        return {
            **kept,
            **self._more,
            "DJANGO_SETTINGS_MODULE": "site_project.settings",
            "PYTHONPATH": os.pathsep.join([str(self._folder), *(part for part in sys.path if part)]),
        }

    def type(self, line: str, how: tuple[str, str, str]) -> None:
        """Do what a hint says."""
        match how:
            case "settings", _, _:
                self._append(line)
            case "callable", _, path:
                self._append(line.replace("dotted.path", path))
            case "replace", file, old:
                self._edit(file, old, line)
            case "remove", file, old:
                self._edit(file, old, "")
            case "environment", file, old:
                self._edit(file, old, "")
                self._more[line] = KEY[::-1]
            case _:
                raise AssertionError(how)

    def _append(self, line: str) -> None:
        path = self._folder / "site_project" / "settings.py"
        path.write_text(path.read_text("utf-8") + line + "\n", "utf-8")

    def _edit(self, file: str, old: str, new: str) -> None:
        path = self._folder / file
        text = path.read_text("utf-8")
        assert old in text, (file, old)
        path.write_text(text.replace(old, new), "utf-8")
