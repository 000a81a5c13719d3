"""The command line, without a server."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import gm_chat
from gm_chat.demo import cli
from gm_chat.demo.banner import banner, curl_lines
from gm_chat.demo.choice import Choice
from gm_chat.demo.cli import main, parser
from gm_chat.demo.project import demo_settings, foreign_variables


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "gm_chat.demo", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=120, env={**os.environ, **environment}
    )


def test_defaults() -> None:
    arguments = parser().parse_args(["demo"])
    assert (arguments.provider, arguments.host, arguments.port) == ("auto", "127.0.0.1", 8000)
    assert (arguments.base_url, arguments.model, arguments.data) == (None, None, None)
    assert not arguments.check
    assert not arguments.reset


def test_options() -> None:
    line = "demo --provider openai --base-url http://h/v1 --model m --port 0 --host ::1 --data d --check --reset"
    arguments = parser().parse_args(line.split())
    assert (arguments.provider, arguments.base_url, arguments.model) == ("openai", "http://h/v1", "m")
    assert (arguments.port, arguments.host, arguments.data) == (0, "::1", Path("d"))
    assert arguments.check
    assert arguments.reset


@pytest.mark.parametrize("line", ["", "demo --port x", "demo --unknown", "other"])
def test_a_wrong_command_line_is_status_2(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(line.split())
    assert stop.value.code == 2
    assert "usage: gm-chat" in capsys.readouterr().err


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["--version"])
    assert stop.value.code == 0
    assert capsys.readouterr().out == f"gm-chat {gm_chat.__version__}\n"


def test_help_needs_no_django() -> None:
    code = (
        "import sys\nfrom gm_chat.demo.cli import main\n"
        "try: main(['demo', '--help'])\nexcept SystemExit: pass\n"
        "print(sorted({'django', 'uvicorn', 'rich', 'graphql'} & set(sys.modules)), file=sys.stderr)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "--provider" in result.stdout
    assert result.stderr.strip() == "[]"


def test_a_missing_extra_says_what_to_type(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert main(["demo"]) == 1
    assert capsys.readouterr().err == "gm-chat demo: uvicorn is not installed: pip install 'gm-chat[demo]'\n"


def test_a_taken_port_is_status_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert main(["demo", "--provider", "offline", "--port", str(port), "--data", str(tmp_path / "data")]) == 1
    assert f"port {port} on 127.0.0.1 is taken" in capsys.readouterr().err
    assert not (tmp_path / "data").exists()


def test_ctrl_c_before_the_server_runs_is_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "choose", interrupt)
    assert main(["demo"]) == 130


def test_an_unusable_folder_is_status_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    assert main(["demo", "--provider", "offline", "--port", "0", "--data", str(tmp_path / "file" / "data")]) == 1
    assert "gm-chat demo: " in capsys.readouterr().err


def test_an_unknown_provider_ends_with_the_check_s_words(tmp_path: Path) -> None:
    result = run("--provider", "nosuch", "--port", "0", "--data", str(tmp_path))
    assert result.returncode == 1
    assert "gm_chat.E00" in result.stdout
    assert "nosuch" in result.stdout
    assert "Traceback" not in result.stdout + result.stderr


def test_the_banner_says_what_runs(tmp_path: Path) -> None:
    text = banner(Choice("offline", {}, "because", ("a note",)), "http://h:1", tmp_path / "jar")
    assert "Provider: offline (because)" in text
    assert "NO LANGUAGE MODEL IS RUNNING" in text
    assert "a note" in text
    assert text.count("\n  curl ") == 3
    for user in ("engineer", "sales", "viewer", "admin"):
        assert f"\n  {user}" in text
    text = banner(Choice("openai", {"model": "m"}, "because"), "http://h:1", tmp_path / "jar")
    assert "Provider: openai, model m (because)" in text
    assert "NO LANGUAGE MODEL" not in text
    assert "Other machines can connect" not in text
    text = banner(Choice("openai"), "http://h:1", tmp_path / "jar", exposed=True)
    assert "Other machines can connect" in text


def test_curl_lines_quote_the_path() -> None:
    for line in curl_lines("http://h:1", Path("/a b/it's/jar")):
        assert "'/a b/it'\"'\"'s/jar'" in line


def test_the_settings_are_safe_for_many_clients() -> None:
    settings = demo_settings(Path("/x/demo.sqlite3"), Choice("offline"))
    options = settings["DATABASES"]["default"]["OPTIONS"]
    assert options["transaction_mode"] == "IMMEDIATE"
    assert options["timeout"] == 20
    assert "journal_mode=WAL" in options["init_command"]
    assert set(settings["GM_CHAT"]["confirm_mutations"]) <= set(settings["GM_CHAT"]["allowed_mutations"])
    assert not settings["GM_CHAT"]["recover_missing_tool_calls"]
    assert demo_settings(Path("x"), Choice("openai"))["GM_CHAT"]["recover_missing_tool_calls"]
    assert settings["ALLOWED_HOSTS"] == ["127.0.0.1", "127.0.0.1", "localhost", "[::1]"]
    assert demo_settings(Path("x"), Choice("offline"), host="0.0.0.0")["ALLOWED_HOSTS"] == ["*"]  # noqa: S104 - what is tested
    assert settings["SECRET_KEY"] != demo_settings(Path("x"), Choice("offline"))["SECRET_KEY"]


def test_foreign_variables() -> None:
    assert foreign_variables({"GM_CHAT_PROVIDER": "x", "HOME": "y", "GM_CHAT_A": "z"}) == [
        "GM_CHAT_A",
        "GM_CHAT_PROVIDER",
    ]
