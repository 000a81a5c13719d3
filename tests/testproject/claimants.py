"""Workers that race for confirmations, in processes of their own: ``python claimants.py DATABASE WORKERS``.

``DATABASE`` is a database's settings as JSON, ``WORKERS`` a list of [what, confirmation id, session key, file, lease].
Django is set up once; then each worker is forked, waits until all are there, and acts:

* ``confirm`` claims, runs the mutation (adds a line to the file), settles, and reports;
* ``die`` claims, runs the mutation, reports, and never comes back.

A report is one line: the process id, the confirmation's id, and ``claimed`` or the code of the refusal.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from testproject import settings

START_SECONDS = 0.3


async def work(what: str, id: str, session: str, file: str, lease: float, start_at: float) -> str:
    # After the fork, and after Django's setup.
    from gm_chat.engine.failures import TurnStopped
    from gm_chat.persistence.conversations import DjangoTurnStore
    from gm_chat.plugin import Actor
    from testproject.stored import answer, confirmation

    store = DjangoTurnStore()
    await asyncio.sleep(start_at - time.time())
    try:
        resumed = await store.claim(confirmation(id, Actor(session_key=session)), max_messages=20, lease_seconds=lease)
    except TurnStopped as stopped:
        return stopped.event.code
    with Path(file).open("a") as mutations:  # noqa: ASYNC230 - one line, in a process that does nothing else
        mutations.write(f"{id} by {os.getpid()}\n")
    if what == "confirm":
        await store.settle(resumed, state="executed", answer=answer(id))
    return "claimed"


def run(what: str, *arguments: Any) -> None:
    report = asyncio.run(work(what, *arguments))
    os.write(1, f"{os.getpid()} {arguments[0]} {report}\n".encode())
    if what == "die":
        signal.pause()


def main(database: str, workers: str) -> None:
    import django

    settings.DATABASES["default"] = json.loads(database)
    os.environ["DJANGO_SETTINGS_MODULE"] = "testproject.settings"
    django.setup()
    import gm_chat.persistence.conversations  # noqa: F401 - once for all workers

    start_at = time.time() + START_SECONDS
    for worker in json.loads(workers):
        if os.fork() == 0:
            try:
                run(*worker, start_at)
            finally:
                os._exit(0)
    while True:
        try:
            os.wait()
        except ChildProcessError:
            return


if __name__ == "__main__":
    main(*sys.argv[1:])
