"""The running demo: the printed commands by bash, who sees what, the database's life, and its own check."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from gm_chat.demo.access import USERS
from gm_chat.demo.client import Client, Reply

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

START_SECONDS = 60


@dataclass
class Demo:
    """A demo in a process of its own; ``output`` is what it has printed."""

    process: subprocess.Popen[str]
    output: str
    url: str

    def stop(self) -> tuple[int, str]:
        self.process.send_signal(signal.SIGINT)
        rest, _ = self.process.communicate(timeout=30)
        return self.process.returncode, self.output + rest


@contextmanager
def running(folder: Path, *arguments: str, provider: str = "offline") -> Iterator[Demo]:
    command = [sys.executable, "-m", "gm_chat.demo", "--provider", provider, "--port", "0", "--data", str(folder)]
    process = subprocess.Popen(
        [*command, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "GM_CHAT_URL": "/elsewhere/", "COLUMNS": "40"},
    )
    assert process.stdout is not None
    output = ""
    try:
        started = time.monotonic()
        while "Ctrl-C stops it" not in output:
            line = process.stdout.readline()
            assert line, f"the demo ended: {output}"
            assert time.monotonic() - started < START_SECONDS
            output += line
        url = re.search(r"Serving at (http://\S+)/ ", output)
        assert url is not None
        yield Demo(process, output, url[1])
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    with running(tmp_path_factory.mktemp("the demo's data")) as demo:
        yield demo


@pytest.fixture(scope="module")
def visitors(demo: Demo) -> dict[str, Client]:
    clients = {user.name: Client(demo.url) for user in USERS}
    for name, client in clients.items():
        client.log_in(name)
    return {**clients, "nobody": Client(demo.url)}


def fetch(address: str | urllib.request.Request) -> Any:
    return urllib.request.urlopen(address, timeout=20)  # noqa: S310 - the test's own server


def results(reply: Reply, tool: str) -> list[Any]:
    return [event["result"] for event in reply.events if event["type"] == "tool_result" and event["name"] == tool]


def test_the_start_says_what_there_is(demo: Demo) -> None:
    assert "Ignored, as the demo brings its own settings: GM_CHAT_" in demo.output
    assert "GM_CHAT_URL" in demo.output
    assert re.search(r"Built 20,\d{3} rows in ", demo.output)
    assert "NO LANGUAGE MODEL IS RUNNING" in demo.output


def test_the_printed_commands_work_as_printed(demo: Demo) -> None:
    commands = [line.strip() for line in demo.output.splitlines() if line.startswith("  curl ")]
    assert len(commands) == 3
    outputs = [
        subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True, timeout=60).stdout
        for command in commands
    ]
    assert json.loads(outputs[0])["user"] == "engineer"
    body = json.loads(outputs[1])
    assert body["answer"].startswith("480 parts where material category is 'aluminium':")
    assert "No language model is running." in body["answer"]
    frames = [json.loads(line.removeprefix("data:")) for line in outputs[2].splitlines() if line.startswith("data:")]
    assert [frame["type"] for frame in frames][-1] == "done"
    assert re.match(r"There are \d+ projects where status is 'active'\.", Reply(tuple(frames)).answer)


def test_the_home_page_repeats_them(demo: Demo) -> None:
    with fetch(demo.url) as response:
        text = response.read().decode()
    assert "curl -s -c" in text
    assert "csrftoken" in response.headers["Set-Cookie"]


@pytest.mark.parametrize(
    ("body", "kind", "status", "detail"),
    [
        (b'{"username": "viewer", "password": "demo"}', "application/json", 200, None),
        (b"username=viewer&password=demo", "application/x-www-form-urlencoded", 200, None),
        (b'{"username": "viewer", "password": "wrong"}', "application/json", 403, "unknown user or wrong password"),
        (b"username=viewer", "application/x-www-form-urlencoded", 400, "username and password are needed"),
        (b'{"username": 1, "password": "demo"}', "application/json", 400, "username and password are needed"),
        (b"[]", "application/json", 400, "the body must be a JSON object"),
        (b"{", "application/json", 400, "the body must be a JSON object"),
    ],
)
def test_log_in(body: bytes, kind: str, status: int, detail: str | None, demo: Demo) -> None:
    request = urllib.request.Request(f"{demo.url}/demo/login/", body, {"Content-Type": kind})  # noqa: S310 - as above
    try:
        with fetch(request) as response:
            answer, code = json.load(response), response.status
    except urllib.error.HTTPError as error:
        with error:
            answer, code = json.load(error), error.code
    assert code == status
    if detail is None:
        assert answer["user"] == "viewer"
        assert answer["csrf_token"]
    else:
        assert detail in answer["detail"]


@pytest.mark.parametrize(
    ("user", "seen"),
    [
        (
            "engineer",
            {"Material", "Supplier", "Part", "Offer", "Project", "Assembly", "BomLine", "Warehouse", "StockLevel"},
        ),
        ("sales", {"Customer", "Order", "OrderLine", "Part", "Material", "Project", "Warehouse", "StockLevel"}),
        ("viewer", {"Material", "Part", "Project"}),
        ("nobody", set()),
    ],
)
def test_everybody_sees_their_managers(user: str, seen: set[str], visitors: dict[str, Client]) -> None:
    found: set[str] = set()
    for words in (
        "materials suppliers parts offers",
        "projects assemblies bom lines",
        "customers orders order lines stock",
    ):
        reply = visitors[user].ask(f"{words} warehouses stock levels", "http")
        for summaries in results(reply, "search_managers"):
            found |= {summary["manager"].removesuffix("Manager") for summary in summaries}
    assert found == seen


def test_confidential_projects_are_rows_that_do_not_exist(visitors: dict[str, Client]) -> None:
    counts = {
        user: results(visitors[user].ask("How many projects do we have?", "sse"), "query")[-1]["total_count"]
        for user in ("engineer", "admin", "sales", "viewer")
    }
    assert counts["engineer"] == counts["admin"] == 90
    assert counts["sales"] == counts["viewer"] < 90
    answer = visitors["viewer"].ask("How many confidential projects are there?", "http").answer
    assert answer.startswith("I found no projects where confidential is true.")


def test_sales_cannot_reach_purchase_prices(visitors: dict[str, Client]) -> None:
    reply = visitors["sales"].ask("what is the purchase price of BRG-10066?", "http")
    assert "query" not in reply.tools or "purchase_price" not in json.dumps(reply.events[-2])
    (schema, *_) = [
        schema
        for schema in results(visitors["sales"].ask("How many parts do we have?", "http"), "get_manager_schema")
        if schema["manager"] == "PartManager"
    ]
    assert not {"offers"} & {relation["name"] for relation in schema["relations"]}


@pytest.mark.parametrize(
    ("user", "question", "opening"),
    [
        ("engineer", "Which parts use aluminum?", "480 parts where material category is 'aluminium':"),
        ("engineer", "which suppliers offer BRG-10125?", "2 suppliers where offers part number is 'BRG-10125':"),
        ("engineer", "which components are obsolete", "165 parts where status is 'obsolete':"),
        ("engineer", "parts heavier than 100 kg", "3 parts where weight is over 100:"),
        ("engineer", "suppliers with a lead time under 7 days", "4 suppliers where lead time days is under 7:"),
        ("engineer", "stock of part BRG-10066", "2 stock levels where part number is 'BRG-10066':"),
        ("engineer", "list titanium nozzles", ""),
        ("sales", "orders of Acme due after 2026-06-30", "1 order where due on is after 2026-06-30"),
        ("sales", "the 3 newest orders", "3 of 1,300 orders, the latest ordered on first:"),
        ("viewer", "what is the material of part BRG-10066?", "1 material where parts number is 'BRG-10066':"),
    ],
)
def test_plain_questions(user: str, question: str, opening: str, visitors: dict[str, Client]) -> None:
    answer = visitors[user].ask(question, "http").answer
    assert answer.startswith(opening)
    assert "Questions that I can answer" not in answer, answer


def test_the_admin_has_its_style_sheets(demo: Demo) -> None:
    with fetch(f"{demo.url}/admin/login/") as response:
        page = response.read().decode()
    style = re.search(r'href="(/static/admin/[^"]+\.css)"', page)
    assert style is not None
    with fetch(demo.url + style[1]) as response:
        assert response.headers["Content-Type"] == "text/css"


def test_a_stored_database_is_used_again_and_another_version_s_is_not(tmp_path: Path) -> None:
    with running(tmp_path) as demo:
        code, output = demo.stop()
    assert code == 0
    assert output.rstrip().endswith("Stopped.")
    assert "Traceback" not in output
    with sqlite3.connect(tmp_path / "demo.sqlite3") as connection:
        connection.execute("UPDATE workshop_part SET name = 'changed' WHERE id = 1")
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.close()
    with running(tmp_path) as demo:
        code, output = demo.stop()
    assert code == 0
    assert "Built" not in output
    assert changed(tmp_path)
    (tmp_path / "demo.version").write_text("gm-chat 0.0.1, demo data 0")
    with running(tmp_path) as demo:
        assert "Built 20," in demo.output
    assert not changed(tmp_path)


def test_reset_builds_anew(tmp_path: Path) -> None:
    for _ in range(2):
        with running(tmp_path, "--reset") as demo:
            assert "Built 20," in demo.output


def changed(folder: Path) -> bool:
    connection = sqlite3.connect(folder / "demo.sqlite3")
    try:
        return bool(connection.execute("SELECT count(*) FROM workshop_part WHERE name = 'changed'").fetchone()[0])
    finally:
        connection.close()


def check(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gm_chat.demo", "--check", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
        env={**os.environ, "COLUMNS": "200", **environment},
    )


def test_check_is_right() -> None:
    result = check()
    assert result.returncode == 0, result.stdout + result.stderr
    assert "10 of 10 answers are right." in result.stdout
    assert "No language model took part" in result.stdout
    assert result.stderr == ""


def test_check_finds_what_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "parrot.py").write_text(
        "from gm_chat.providers.base import DoneEvent, TextChunkEvent\n"
        "class Parrot:\n"
        "    async def complete(self, messages, tools):\n"
        "        if 'aluminium' in messages[-1].content: raise OSError('down')\n"
        "        yield TextChunkEvent('It is 5.')\n"
        "        yield DoneEvent()\n"
    )
    result = check("--provider", "parrot.Parrot", PYTHONPATH=str(tmp_path))
    assert result.returncode == 1, result.stdout + result.stderr
    assert "2 of 10 answers are right." in result.stdout
    assert "NO: error chat_error" in " ".join(result.stdout.split())
    assert "rests on no" in result.stdout
