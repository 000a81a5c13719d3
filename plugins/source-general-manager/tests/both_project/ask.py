"""Asks both chats in one process, as the project's server runs them, and prints what came of it as JSON."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from typing import Any

import django
from django.apps import apps
from django.contrib.auth import get_user_model
from django.core import checks
from django.core.management import call_command, get_commands
from django.test import Client
from django.urls import resolve

from gm_chat.testing import ScriptedProvider
from gm_chat.testing.scripted import call, done


def post(client: Client, path: str, text: str) -> Any:
    response = client.post(path, {"text": text}, content_type="application/json")
    return {"status": response.status_code, "body": response.json()}


def main() -> dict[str, Any]:
    django.setup()
    output = io.StringIO()
    with redirect_stdout(output), redirect_stderr(output):
        call_command("migrate", run_syncdb=True, verbosity=0)
        found = checks.run_checks()
    # Imported here: they are models, and what needs them.
    from both_project.depot.managers import Bay, Box
    from both_project.provider import TheirProvider

    user = get_user_model().objects.create_user("clerk", password="x")
    bay = Bay.create(creator_id=user.pk, name="north")
    Box.create(creator_id=user.pk, label="apples", bay=bay)
    client = Client()
    client.force_login(user)
    query = call("query", manager="Box", fields=["label", "bay__name"])
    write = call("mutate", mutation="createBox", input={"label": "pears", "bay": 1})
    with ScriptedProvider.playing([query, done()], ["ours", done()]):
        ours = post(client, "/assistant/", "which boxes?")
    theirs = post(client, "/chat/", "which boxes?")
    with ScriptedProvider.playing([write, done()], ["written", done()]):
        asked = post(client, "/assistant/", "add pears")
    boxes = list(Box.Interface._model.objects.values_list("label", flat=True))
    return {
        "checks": [(item.id, str(item.msg)) for item in found],
        "ours": ours,
        "theirs": theirs,
        "asked": asked,
        "their_calls": TheirProvider.calls,
        "boxes": boxes,
        "conversations": {
            label: apps.get_model(label, "ChatConversation").objects.count() for label in ("gm_chat", "general_manager")
        },
        "places": {path: resolve(path).namespace for path in ("/assistant/", "/chat/")},
        "commands": {name: app for name, app in get_commands().items() if "chat" in name},
    }


if __name__ == "__main__":
    print(json.dumps(main(), default=str))  # noqa: T201 - it is read by the test
