"""``manage.py chat ["question"]``: the chat in a terminal, over the same turns as every other transport."""

from __future__ import annotations

import asyncio
import getpass
import re
import sys
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any, Final

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError
from django.core.management.color import supports_color

from gm_chat.encoding import to_json
from gm_chat.engine.events import ConfirmMutation, Done, Error, TextChunk, ToolCall, ToolResult
from gm_chat.engine.ports import ConfirmRequest, TurnRequest
from gm_chat.plugin import Actor
from gm_chat.transports.checked import BadMessage, usable_text
from gm_chat.transports.turns import begin
from gm_chat.transports.wire import event_object, logged_object
from gm_chat.wiring import Runtime, get_runtime

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping

    from gm_chat.engine import TurnRunner
    from gm_chat.engine.events import Event

__all__ = ["Command"]

INTERRUPTED: Final = 130
LINE_LENGTH: Final = 120
SCOPE: Final = {"type": "terminal"}
# What a terminal would obey instead of showing: the text may quote a row of data.
CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class Command(BaseCommand):
    """Without a question it prompts, turn after turn. Ctrl-C stops a turn; a second one, or one at the prompt, leaves.

    A change that needs an approval is put to whoever sits at the terminal; in a pipe it is not done.

    Without ``--user`` the actor is nobody, with a conversation of its own per login name of the operating system, and
    sees public managers only.
    """

    help = 'Ask the chat: manage.py chat "Which parts use aluminium?"'

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Take the question, whose rights to use, and the form of the output."""
        parser.add_argument("question", nargs="?", help="Without it, questions are read one by one.")
        parser.add_argument(
            "--user", metavar="USERNAME", help="Ask with the rights, and in the conversation, of a user."
        )
        parser.add_argument("--json", action="store_true", help="Print the turn's events, one JSON object a line.")

    def handle(self, *_args: Any, question: str | None, user: str | None, json: bool, **options: Any) -> None:
        """Answer one question, or prompt for them."""
        self._json = json
        self._within_line = False
        self._dim = not options["no_color"] and (options["force_color"] or supports_color())
        actor = _actor(user)
        if user is None and not json:
            self._note("Asking as nobody, who sees public managers only. Ask as somebody with --user USERNAME.")
        runtime = get_runtime()
        with asyncio.Runner() as loop:
            if question is None:
                self._prompt(loop, runtime, actor)
                return
            try:
                failure = self._ask(loop, runtime, actor, question)
            except KeyboardInterrupt:
                self._note("Stopped.")
                sys.exit(INTERRUPTED)
        if failure is not None:
            raise CommandError(failure)

    def _prompt(self, loop: asyncio.Runner, runtime: Runtime, actor: Actor) -> None:
        with suppress(ImportError):
            import readline  # noqa: F401 - importing it gives input() a history; not every platform has it
        while True:
            try:
                question = input("> ")
            except (EOFError, KeyboardInterrupt):
                self.stdout.write()
                return
            if not question.strip():
                continue
            try:
                failure = self._ask(loop, runtime, actor, question)
            except KeyboardInterrupt:
                self._note("Stopped.")
                continue
            if failure is not None:
                self.stderr.write(failure)

    def _ask(self, loop: asyncio.Runner, runtime: Runtime, actor: Actor, question: str) -> str | None:
        """Run one turn; return what went wrong, in words. Ctrl-C cancels it and raises ``KeyboardInterrupt``."""
        try:
            text = usable_text(question, max_characters=runtime.settings.max_message_characters)
        except BadMessage as error:
            return str(error)
        request: TurnRequest | ConfirmRequest
        request = TurnRequest(actor=actor, text=text, transport="terminal", scope=SCOPE)
        while True:
            last = loop.run(self._follow(runtime.runner, request))
            if not isinstance(last, ConfirmMutation):
                return _in_words(last) if isinstance(last, Error) else None
            request = ConfirmRequest(
                actor=actor,
                confirmation_id=last.id,
                approved=self._approves(last),
                transport="terminal",
                scope=SCOPE,
            )

    async def _follow(self, runner: TurnRunner, request: TurnRequest | ConfirmRequest) -> Event | None:
        """Show what comes of a request, and return the last event."""
        place = (await begin(runner, request)).place
        if isinstance(place, Error):
            if self._json:
                self.stdout.write(to_json(event_object(place)))
            return place
        last = None
        try:
            async with aclosing(runner.subscribe(*place, actor=request.actor)) as events:
                async for logged in events:
                    last = logged.event
                    if self._json:
                        self.stdout.write(to_json(logged_object(logged)))
                    else:
                        self._show(last)
        except asyncio.CancelledError:
            await runner.cancel(place[0], actor=request.actor)
            raise
        return last

    def _approves(self, question: ConfirmMutation) -> bool:
        """Ask whoever sits at the terminal. Where nobody does, or they leave, nothing is changed."""
        self._note(f"{question.mutation} {to_json(question.input)}")
        for line in _told(question.preview or {}):
            self._note(f"  {line}")
        if self._json or not sys.stdin.isatty():
            self._note("Not done: it needs an approval, and nobody is at the terminal.")
            return False
        self._note("Do it? [y/N]")
        try:
            return input().strip().casefold() in {"y", "yes"}
        except (EOFError, KeyboardInterrupt):
            return False

    def _show(self, event: Event) -> None:
        match event:
            case TextChunk(content):
                self._within_line = not content.endswith("\n")
                self.stdout.write(CONTROL.sub("", content), ending="")
                self.stdout.flush()
            case ToolCall(name=name, args=args):
                line = f"{name} {to_json(args)}"
                self._note(line if len(line) <= LINE_LENGTH else line[: LINE_LENGTH - 1] + "…")
            case Done() | Error():
                self._end_line()
            case ToolResult() | ConfirmMutation():
                pass

    def _end_line(self) -> None:
        if self._within_line:
            self.stdout.write()
            self.stdout.flush()
        self._within_line = False

    def _note(self, line: str) -> None:
        """A line beside the answer: on standard error, so that the output is the answer alone."""
        self._end_line()
        line = CONTROL.sub("", line)
        self.stderr.write(f"\x1b[2m{line}\x1b[0m" if self._dim else line, lambda text: text)


def _told(preview: Mapping[str, Any]) -> Iterator[str]:
    """What a change would do, a line each: of the row, of its values, of what goes along with it."""

    def words(item: Mapping[str, Any], value: str, label: str) -> str:
        text = to_json(item[value])
        called = f" ({to_json(item[label])})" if label in item else ""
        return f"{text if len(text) <= LINE_LENGTH else text[: LINE_LENGTH - 1] + '…'}{called}"

    if "row" in preview:
        yield f"{preview['manager']} {words(preview['row'], 'id', 'label')}"
    for item in preview.get("arguments", ()):
        yield f"{item['name']}: {words(item, 'value', 'label')}"
    for item in preview.get("changes", ()):
        yield f"{item['field']}: " + " -> ".join(
            words(item, when, f"{when}_label") for when in ("old", "new") if when in item
        )
    for item in preview.get("also_deleted", ()):
        yield f"also deletes {item['rows']} of {item['manager']}"


def _actor(username: str | None) -> Actor:
    if username is None:
        return Actor(session_key=f"terminal-{getpass.getuser()}")
    users = get_user_model()
    try:
        user = users._default_manager.get(**{users.USERNAME_FIELD: username})
    except users.DoesNotExist:
        raise CommandError(f"There is no user {username!r}.") from None
    if not user.is_active:
        raise CommandError(f"The user {username!r} is not active.")
    return Actor(user_id=str(user.pk), user=user)


def _in_words(error: Error) -> str:
    words = [error.message]
    if "retry_after_seconds" in error.details:
        words.append(f"Try again in {error.details['retry_after_seconds']} seconds.")
    if "correlation_id" in error.details:
        words.append(f"The log has the cause under {error.details['correlation_id']}.")
    return f"{' '.join(words)} ({error.code})"
