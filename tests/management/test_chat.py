from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command
from django.db import connection
from testproject.shop.models import Document, Material, Part

from gm_chat.models import ChatConversation, ChatTurn
from gm_chat.testing.scripted import ScriptedProvider, call

pytestmark = pytest.mark.django_db(transaction=True)

ROOT = Path(__file__).resolve().parents[2]


def ask(*arguments: str, **options: Any) -> tuple[str, str]:
    out, err = StringIO(), StringIO()
    call_command("chat", *arguments, stdout=out, stderr=err, **options)
    return out.getvalue(), err.getvalue()


def test_the_output_is_the_answer_and_tool_calls_stand_beside_it() -> None:
    with ScriptedProvider.playing(["Let me look.", call("find", name="x" * 200)], ["Two ", "parts."]):
        out, err = ask("Which parts?")
    assert out == "Let me look.\nTwo parts.\n"
    note, line = err.splitlines()
    assert "--user" in note
    assert line.startswith('find {"name":"xxx')
    assert line.endswith("…")
    assert len(line) == 120


def test_notes_are_dim_where_colour_is_wanted() -> None:
    with ScriptedProvider.playing([call("find")], ["Done."]):
        _, err = ask("Which parts?", force_color=True)
    assert "\x1b[2mfind {}\x1b[0m" in err


def test_control_characters_of_an_answer_do_not_reach_the_terminal() -> None:
    with ScriptedProvider.playing(["\x1b]0;owned\x07tab\there\r\nnext\x9b2J"]):
        out, _ = ask("Which parts?")
    assert out == "]0;ownedtab\there\nnext2J\n"


def test_events_as_json_lines() -> None:
    with ScriptedProvider.playing(["Hi"]):
        out, err = ask("Which parts?", "--json")
    assert [json.loads(line)["type"] for line in out.splitlines()] == ["text_chunk", "done"]
    assert err == ""


def test_a_failed_turn_is_told_in_words() -> None:
    with (
        ScriptedProvider.playing(["Well", RuntimeError("secret")]),
        pytest.raises(CommandError, match=r"internal problem\. The log has the cause under \w+\. \(chat_error\)"),
    ):
        ask("Which parts?")


def test_a_blank_question() -> None:
    with pytest.raises(CommandError, match="non-blank"):
        ask(" ")


def test_nobody_has_a_conversation_of_their_own_that_goes_on() -> None:
    for _ in range(2):
        with ScriptedProvider.playing(["Hi"]) as script:
            ask("Hello")
    assert [message.role for message in script.requests[0].messages] == ["system", "user", "assistant", "user"]
    key = ChatConversation.objects.get().session_key
    assert key is not None
    assert key.startswith("terminal-")


def test_a_user_asks_in_the_user_s_conversation() -> None:
    user = get_user_model()._default_manager.create(username="ada")
    with ScriptedProvider.playing(["Hi"]):
        _, err = ask("Hello", "--user", "ada")
    assert err == ""
    assert ChatConversation.objects.get().user_id == user.pk


def test_who_cannot_ask() -> None:
    get_user_model()._default_manager.create(username="bob", is_active=False)
    with pytest.raises(CommandError, match="no user 'ada'"):
        ask("Hello", "--user", "ada")
    with pytest.raises(CommandError, match="'bob' is not active"):
        ask("Hello", "--user", "bob")


class TestApproval:
    """A change that needs the user's word, put to whoever sits at the terminal."""

    @pytest.fixture(autouse=True)
    def project(self, settings: Any) -> None:
        settings.GM_CHAT = settings.GM_CHAT | {
            "allowed_mutations": ["createMaterial"],
            "confirm_mutations": ["createMaterial"],
        }
        get_user_model()._default_manager.create_superuser("ada")

    @pytest.fixture
    def somebody(self, monkeypatch: pytest.MonkeyPatch) -> list[str | BaseException]:
        words: list[str | BaseException] = []

        def read() -> str:
            word = words.pop(0)
            if isinstance(word, BaseException):
                raise word
            return word

        monkeypatch.setattr("builtins.input", read)
        monkeypatch.setattr("sys.stdin.isatty", lambda: True)
        return words

    def add(self, *arguments: str, name: str = "Zinc", then: str = "Done.") -> tuple[str, str]:
        create = call("mutate", mutation="createMaterial", input={"name": name, "density": 7.1})
        with ScriptedProvider.playing([create], [then]):
            return ask("Add it", "--user", "ada", *arguments)

    def test_it_is_shown_whole_and_done_on_yes(self, somebody: list[str | BaseException]) -> None:
        somebody += [" Yes "]
        out, err = self.add(name="x" * 80)
        assert 'createMaterial {"name":"' + "x" * 80 + '","density":7.1}' in err
        assert err.endswith("Do it? [y/N]\n")
        assert out == "Done.\n"
        assert Material.objects.count() == 1

    def test_what_it_would_do_is_told_in_lines(self, somebody: list[str | BaseException], settings: Any) -> None:
        changes = ["updatePart", "deletePart"]
        settings.GM_CHAT = settings.GM_CHAT | {"allowed_mutations": changes, "confirm_mutations": changes}
        steel = Material.objects.create(name="Steel", density=7.8)
        brass = Material.objects.create(name="Bra\x1bss", density=8.4)
        part = Part.objects.create(number="X-1", name="Bolt", material=steel)
        Document.objects.create(title="drawing", part=part)
        somebody += ["y", "n"]
        update = call("mutate", mutation="updatePart", input={"id": part.pk, "material": brass.pk, "price": "9.9"})
        delete = call("mutate", mutation="deletePart", input={"id": part.pk})
        with ScriptedProvider.playing([update], [delete], ["Done."]):
            _, err = ask("Change it", "--user", "ada")
        assert f'  PartManager {part.pk} ("Bolt")\n  price: null -> "9.90"\n' in err
        assert f'  material: {steel.pk} ("Steel") -> {brass.pk} ("Bra\\u001bss")\nDo it? [y/N]\n' in err
        assert '  price: "9.90"\n' in err
        assert "  also deletes 1 of DocumentManager\nDo it? [y/N]\n" in err
        part.refresh_from_db()
        assert part.material == brass

    @pytest.mark.parametrize("word", ["", "n", "yess", EOFError(), KeyboardInterrupt()], ids=repr)
    def test_anything_else_is_a_no(self, somebody: list[str | BaseException], word: str | BaseException) -> None:
        somebody += [word]
        out, _ = self.add(then="As you wish.")
        assert out == "As you wish.\n"
        assert not Material.objects.exists()

    def test_a_word_that_comes_too_late(self, somebody: list[str | BaseException], settings: Any) -> None:
        settings.GM_CHAT = settings.GM_CHAT | {"confirm_timeout_seconds": 0.001}
        somebody += ["y"]
        with pytest.raises(CommandError, match="confirmation_unavailable"):
            self.add()
        assert not Material.objects.exists()

    @pytest.mark.parametrize("arguments", [(), ("--json",)])
    def test_where_nobody_is_asked_nothing_is_done(self, arguments: tuple[str, ...], somebody: Any) -> None:
        if not arguments:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("sys.stdin.isatty", lambda: False)
                out, err = self.add(then="As you wish.")
        else:
            out, err = self.add(*arguments, then="As you wish.")
            kinds = [json.loads(line)["type"] for line in out.splitlines()]
            assert kinds == ["tool_call", "confirm_mutation", "tool_result", "text_chunk", "done"]
        assert "nobody is at the terminal" in err
        assert "As you wish." in out
        assert not Material.objects.exists()


def test_a_refusal_is_told_in_words_and_as_an_event(settings: Any) -> None:
    get_user_model()._default_manager.create_superuser("ada")
    settings.GM_CHAT = settings.GM_CHAT | {"permission": lambda user, scope: False}
    with pytest.raises(CommandError, match="permission_denied"):
        ask("Hello", "--user", "ada")
    out = StringIO()
    with pytest.raises(CommandError):
        call_command("chat", "Hello", "--user", "ada", "--json", stdout=out, stderr=StringIO())
    assert json.loads(out.getvalue())["code"] == "permission_denied"


class TestPrompt:
    @pytest.fixture
    def typed(self, monkeypatch: pytest.MonkeyPatch) -> list[str | BaseException]:
        lines: list[str | BaseException] = []

        def read(prompt: str) -> str:
            assert prompt == "> "
            line = lines.pop(0) if lines else EOFError()
            if isinstance(line, BaseException):
                raise line
            return line

        monkeypatch.setattr("builtins.input", read)
        return lines

    def test_it_asks_until_the_input_ends(self, typed: list[str | BaseException]) -> None:
        typed += ["one", "  ", "two"]
        with ScriptedProvider.playing(["First."], ["Second."]) as script:
            out, _ = ask()
        assert out == "First.\nSecond.\n\n"
        assert [message.content for message in script.requests[1].messages][1:] == ["one", "First.", "two"]

    def test_a_failure_does_not_end_it(self, typed: list[str | BaseException]) -> None:
        typed += ["one", "two"]
        with ScriptedProvider.playing([RuntimeError("x")], ["Second."]):
            out, err = ask()
        assert "(chat_error)" in err
        assert "Second." in out

    def test_interrupting_it_at_the_prompt_leaves(self, typed: list[str | BaseException]) -> None:
        typed += [KeyboardInterrupt(), "never asked"]
        with ScriptedProvider.playing() as script:
            ask()
        assert script.requests == []


class TestInterruption:
    """Real signals to a real process: Ctrl-C stops the turn, and the provider with it."""

    @pytest.fixture
    def project(self, tmp_path: Path, transactional_db: None) -> dict[str, str]:
        (tmp_path / "interrupted_settings.py").write_text(
            "from testproject.settings import *\n"
            f"DATABASES['default']['NAME'] = {str(connection.settings_dict['NAME'])!r}\n"
            "GM_CHAT = GM_CHAT | {'provider_config': {'script': [['first ', 60]]}}\n"
        )
        path = os.pathsep.join([str(tmp_path), str(ROOT / "tests"), str(ROOT)])
        return os.environ | {"PYTHONPATH": path, "DJANGO_SETTINGS_MODULE": "interrupted_settings"}

    def start(self, project: dict[str, str], *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "django", "chat", "--skip-checks", *arguments],
            env=project,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def test_one_question(self, project: dict[str, str]) -> None:
        process = self.start(project, "Hello")
        assert process.stdout is not None
        assert process.stdout.read(6) == "first "
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=10)
        assert process.returncode == 130
        assert err.endswith("Stopped.\n")
        assert "Traceback" not in err
        assert ChatTurn.objects.get().state == "cancelled"

    def test_the_prompt_comes_back(self, project: dict[str, str]) -> None:
        process = self.start(project)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("Hello\n")
        process.stdin.flush()
        assert process.stdout.read(8) == "> first "
        process.send_signal(signal.SIGINT)
        assert process.stdout.read(3) == "\n> "
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=10)
        assert process.returncode == 0
        assert "Stopped." in err
        assert "Traceback" not in err
