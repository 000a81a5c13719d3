"""docs/operations.md tells the truth: its settings, nginx and workers run, and its log lines are all there are."""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import shutil
import ssl
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from testproject.deployed import DeployedProject, free_port
from testproject.redis_server import PrivateRedis

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(__file__).resolve().parents[2]
TEXT: Final = (ROOT / "docs" / "operations.md").read_text("utf-8")
LEVELS: Final = {"debug", "info", "warning", "error", "exception", "critical"}
TOKEN: Final = "t" * 32
USERS: Final = """
import django; django.setup()
from django.contrib.auth import get_user_model
from django.test import Client
client = Client()
client.force_login(get_user_model().objects.create_superuser("ada"))
print(client.cookies["sessionid"].value)
"""
ASK: Final = """
import django; django.setup()
from gm_chat.models import ChatTurn
from gm_chat_audit_logging.models import AuditRecord
print(*ChatTurn.objects.order_by("created").values_list("state", flat=True), AuditRecord.objects.count())
"""


# --- log lines ----------------------------------------------------------------------------------------------------


def sources() -> Iterator[tuple[Path, str]]:
    """The modules that run in production, with their names."""
    for path in sorted((ROOT / "gm_chat").rglob("*.py")):
        if path.relative_to(ROOT).parts[1] not in {"testing", "demo", "evals"}:
            yield path, ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in sorted(ROOT.glob("plugins/*/src/**/*.py")):
        yield path, ".".join(path.relative_to(ROOT).with_suffix("").parts[3:])


def log_calls(path: Path, module: str) -> Iterator[tuple[str, str, str]]:
    """Logger, level and line of each call of a module's ``logger``."""
    logger, calls = "", []
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        match node:
            case ast.Call(func=ast.Attribute(attr="getLogger"), args=[ast.Constant(value=str(name))]):
                logger = name
            case ast.Call(func=ast.Attribute(attr="getLogger"), args=[ast.Name(id="__name__")]):
                logger = module.removesuffix(".__init__")
            case ast.Call(func=ast.Attribute(value=ast.Name(id="logger"), attr="log"), args=[_, line, *_]):
                calls.append(("error", ast.literal_eval(line)))
            case ast.Call(func=ast.Attribute(value=ast.Name(id="logger"), attr=level), args=[line, *_]):
                assert level in LEVELS, (path, level)
                calls.append((level, ast.literal_eval(line)))
    return ((logger, level, line) for level, line in calls)


def test_every_log_line_is_explained_and_no_other() -> None:
    part = TEXT.partition("## Log lines")[2].partition("\n## ")[0]
    told = re.findall(r"^\| `([\w.]+)` \| (\w+) \| `(.+?)` \|", part, re.MULTILINE)
    assert len(told) == len(set(told))
    assert set(told) == {call for path, module in sources() for call in log_calls(path, module)}


# --- the deployment -----------------------------------------------------------------------------------------------


def block(begin: str) -> str:
    """The code block that begins with this line."""
    found = re.search(rf"```\w+\n({re.escape(begin)}\n.*?)```", TEXT, re.DOTALL)
    assert found is not None, begin
    return found[1]


def absent(what: str, name: str) -> None:
    if name in os.environ.get("GM_CHAT_REQUIRE", "").split(","):
        pytest.fail(what)
    pytest.skip(what)


@contextmanager
def database() -> Iterator[dict[str, str]]:
    """A PostgreSQL database of this test's own, as the settings of the page are told of it."""
    psycopg = pytest.importorskip("psycopg")
    name = f"gm_chat_operations_{os.getpid()}"
    place = {"DB_USER": os.environ.get("PGUSER", "postgres"), "DB_HOST": os.environ.get("PGHOST", "127.0.0.1")}
    try:
        admin = psycopg.connect(
            dbname="postgres", user=place["DB_USER"], host=place["DB_HOST"], autocommit=True, connect_timeout=3
        )
    except psycopg.OperationalError as error:
        absent(f"PostgreSQL cannot be reached: {str(error).splitlines()[0]}", "postgres")
    with admin:
        admin.execute(f'CREATE DATABASE "{name}"')
        try:
            yield {**place, "DB_NAME": name}
        finally:
            admin.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def files(folder: Path, here: int, workers: int) -> dict[str, str]:
    """The page's files, at addresses of this test's own."""
    before = (
        'SECRET_KEY = "of-no-use-to-anybody-0123456789-abcdefghijklmnopqrstuvwxyz"\nUSE_TZ = True\n'
        'DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"\nROOT_URLCONF = "site_project.urls"\n'
        'INSTALLED_APPS = ["django.contrib.auth", "django.contrib.contenttypes", "django.contrib.sessions"]\n'
        'INSTALLED_APPS += ["members"]\n'
        "MIDDLEWARE = [\n" + "".join(f'    "django.{name}",\n' for name in MIDDLEWARE) + "]\n"
    )
    settings = block("# settings.py").replace("chat.example.com", "127.0.0.1")
    nginx = block("# /etc/nginx/conf.d/chat.conf").replace("chat.example.com", "127.0.0.1")
    nginx = nginx.replace("127.0.0.1:8001", f"127.0.0.1:{workers}").replace("listen 443", f"listen 127.0.0.1:{here}")
    own = "".join(f"{name}_temp_path {folder};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    return {
        "site_project/settings.py": before + settings,
        "site_project/urls.py": block("# urls.py"),
        "members/chat_managers.py": "from gm_chat.managers import expose\nfrom members.models import Member\n"
        'MemberManager = expose(Member, fields=["name"])\n',
        "nginx.conf": f"pid {folder}/nginx.pid; error_log stderr; events {{}}\nhttp {{ access_log off; {own}\n"
        + nginx.replace("/etc/ssl", str(folder))
        + "}\n",
    }


MIDDLEWARE: Final = (
    "middleware.security.SecurityMiddleware",
    "contrib.sessions.middleware.SessionMiddleware",
    "middleware.csrf.CsrfViewMiddleware",
    "contrib.auth.middleware.AuthenticationMiddleware",
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """nginx before two workers, all as the page says."""
    for name in ("gm_chat_audit_logging", "gm_chat_ratelimit_redis", "channels_redis", "httpx", "websockets"):
        pytest.importorskip(name)
    nginx = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if nginx is None or shutil.which("openssl") is None:
        absent("nginx or openssl is not installed", "nginx")
    folder = tmp_path_factory.mktemp("site")
    names = ["-subj", "/CN=127.0.0.1", "-keyout", "chat.key", "-out", "chat.pem"]
    request = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *names]
    subprocess.run(request, cwd=folder, check=True, capture_output=True)
    here, port = free_port(), free_port()
    command = block("python manage.py check --deploy && python manage.py migrate").splitlines()[1]
    command = command.replace("8001", str(port)).replace("--workers 4", "--workers 2")
    with database() as place, PrivateRedis() as redis:
        environment = {
            **place,
            "REDIS_URL": redis.url,
            "GM_CHAT_DISABLED_PLUGINS": "acme",
            "GM_CHAT_PROVIDER": "testproject.slow_provider.SlowProvider",
        }
        project = DeployedProject(folder, files=files(folder, here, port), environment=environment)
        assert project.check("--deploy") == {}
        project.run("migrate", "--verbosity", "0")
        session = project.run("-c", USERS, program="-Wignore").split()[-1]
        workers = [sys.executable, "-m", *shlex.split(command)]
        with (
            project.running(workers, port, folder / "workers.log") as process,
            project.running([nginx, "-c", f"{folder}/nginx.conf", "-g", "daemon off;"], here, folder / "nginx.log"),
        ):
            yield Site(project, f"https://127.0.0.1:{here}", session, process)


class Site:
    """What a browser and an operator can do."""

    def __init__(self, project: DeployedProject, url: str, session: str, workers: subprocess.Popen[bytes]) -> None:
        self.project, self.url, self.session, self.workers = project, url, session, workers

    def browser(self, **cookies: str) -> Any:
        import httpx

        headers = {"X-CSRFToken": TOKEN, "Origin": "https://127.0.0.1", "Referer": "https://127.0.0.1/"}
        cookies = {"csrftoken": TOKEN, **cookies}
        return httpx.Client(base_url=self.url, cookies=cookies, headers=headers, verify=False, timeout=20)  # noqa: S501 - its own

    def states(self) -> list[str]:
        """The turns' states, oldest first, and the number of audit events."""
        return self.project.run("-c", ASK, program="-Wignore").split()


def test_it_serves_whom_it_should(site: Site) -> None:
    with site.browser() as stranger:
        assert stranger.post("/chat/", json={"text": "count to 1"}).status_code == 403
        assert (stranger.get("/chat/").status_code, stranger.get("/ready/").text) == (405, "ready")
    with site.browser(sessionid=site.session) as browser:
        events = browser.post("/chat/", json={"text": "count to 3"}).json()["events"]
        assert [event["type"] for event in events] == ["text_chunk"] * 3 + ["done"]
        with browser.stream("POST", "/chat/stream/", json={"text": "count to 300"}) as stream:
            lines = (line.removeprefix("data: ") for line in stream.iter_lines() if line.startswith("data: "))
            first = json.loads(next(lines))
            # Held back by nginx, it would be there when the turn is over, and nothing left to cancel.
            assert browser.post("/chat/cancel/", json={"turn_id": first["turn_id"]}).json() == {"cancelled": True}
            assert json.loads(list(lines)[-1])["code"] == "cancelled"
    states = site.states()
    assert states[:-1] == ["done", "cancelled"]
    assert int(states[-1]) >= 4


def test_its_socket_streams_too(site: Site) -> None:
    from websockets.sync.client import connect

    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    cookie = {"Cookie": f"sessionid={site.session}"}
    url = site.url.replace("https", "wss") + "/chat/"
    with connect(url, ssl=context, origin="https://127.0.0.1", additional_headers=cookie) as socket:
        socket.send(json.dumps({"type": "message", "text": "count to 300"}))
        assert json.loads(socket.recv(10))["type"] == "text_chunk"
        socket.send(json.dumps({"type": "cancel"}))
        events = [json.loads(socket.recv(10))]
        while events[-1]["type"] == "text_chunk":
            events.append(json.loads(socket.recv(10)))
    assert events[-1]["code"] == "cancelled"


def test_a_worker_that_is_told_to_end_records_what_it_breaks_off(site: Site) -> None:
    """Last, for it ends the workers."""
    body = {"text": "count to 900"}
    with site.browser(sessionid=site.session) as browser, browser.stream("POST", "/chat/stream/", json=body) as stream:
        next(line for line in stream.iter_lines() if line.startswith("data: "))
        site.workers.terminate()
        deadline = time.monotonic() + 30
        while site.workers.poll() is None:
            assert time.monotonic() < deadline, "the workers did not end"
            time.sleep(0.1)
    assert site.states()[-2] == "cancelled"
