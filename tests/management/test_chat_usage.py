"""``manage.py chat_usage``: the sums, their form, and what is refused."""

from __future__ import annotations

import csv
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from gm_chat.models import ChatConversation, ChatTurn

pytestmark = pytest.mark.django_db

TODAY = timezone.localdate()


def counts(input_tokens: int, output_tokens: int, *, reported: bool = True) -> dict[str, Any]:
    tokens = {"input_tokens": input_tokens, "output_tokens": output_tokens}
    return {**tokens, "cached_tokens": 0, "thinking_tokens": 0, "reported": reported}


@pytest.fixture(autouse=True)
def turns(settings: Any, django_user_model: Any) -> None:
    settings.GM_CHAT = {**settings.GM_CHAT, "prices": {"openai/small": {"input": "1", "output": "10"}}}
    ada = ChatConversation.objects.create(
        user=django_user_model.objects.create(pk=7, username="ada"), updated=timezone.now()
    )
    grace = ChatConversation.objects.create(
        user=django_user_model.objects.create(pk=8, username="grace"), updated=timezone.now()
    )
    for number, (conversation, spent) in enumerate(
        [
            (ada, {"openai/small": counts(1000, 100)}),
            (ada, {"openai/small": counts(2000, 200), "ollama": counts(0, 0, reported=False)}),
            (grace, {"openai/small": counts(0, 0, reported=False)}),
            (grace, {"openai/small": counts(500_000, 0)}),
        ]
    ):
        ChatTurn.objects.create(id=f"t{number}", conversation=conversation, spent=spent)
    old = ChatTurn.objects.create(id="old", conversation=ada, spent={"openai/small": counts(9, 9)})
    ChatTurn.objects.filter(pk=old.pk).update(created=timezone.localtime() - timedelta(60))


def usage(*arguments: str) -> str:
    out = StringIO()
    call_command("chat_usage", *arguments, stdout=out)
    return out.getvalue()


def cells(*arguments: str) -> list[list[str]]:
    return list(csv.reader(StringIO(usage("--csv", *arguments))))


def test_the_table() -> None:
    assert usage().splitlines()[1:] == [
        "actor   model         turns  unreported  input_tokens  cached_tokens  output_tokens      cost",
        "user:7  ollama            1           1             -              -              -         -",
        "user:7  openai/small      2           0          3000              0            300  0.006000",
        "user:8  openai/small      2           1        500000              0              0         -",
    ]


def test_csv_leaves_empty_what_is_unknown() -> None:
    assert cells("--by", "model") == [
        ["model", "turns", "unreported", "input_tokens", "cached_tokens", "output_tokens", "cost"],
        ["ollama", "1", "1", "", "", "", ""],
        ["openai/small", "4", "1", "503000", "0", "300", ""],
    ]


def test_groups_and_periods() -> None:
    header, *rows = cells("--by", "day,actor,conversation,model")
    assert header[:4] == ["day", "actor", "conversation", "model"]
    assert {row[0] for row in rows} == {TODAY.isoformat()}
    long_ago = (TODAY - timedelta(90)).isoformat()
    assert [row[1] for row in cells("--by", "actor", "--since", long_ago)[1:]] == ["4", "2"]
    then = (TODAY - timedelta(60)).isoformat()
    assert cells("--by", "day", "--since", then, "--until", then)[1:] == [[then, "1", "0", "9", "0", "9", "0.000099"]]
    assert usage("--since", long_ago, "--until", long_ago).endswith("Nothing was used.\n")


def test_no_cell_is_a_formula() -> None:
    ChatTurn.objects.all().delete()
    conversation = ChatConversation.objects.first()
    ChatTurn.objects.create(id="x", conversation=conversation, spent={'=HYPERLINK("x")': counts(1, 1)})
    assert cells("--by", "model")[1][0] == '\'=HYPERLINK("x")'


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--by", "colour"], "'colour' is none of them"),
        (["--by", ","], "nothing is named"),
        (["--since", "yesterday"], "'yesterday' is no day"),
        (["--since", "2030-02-01", "--until", "2030-01-01"], "is after"),
    ],
)
def test_what_makes_no_sense_is_named(arguments: list[str], named: str) -> None:
    with pytest.raises(CommandError, match=named):
        usage(*arguments)
