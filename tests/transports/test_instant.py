from __future__ import annotations

import asyncio
from concurrent.futures import Future, ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest
from asgiref.sync import SyncToAsync, ThreadSensitiveContext, sync_to_async
from django.contrib.auth.middleware import AuthenticationMiddleware
from django.contrib.sessions.middleware import SessionMiddleware
from django.core.handlers.asgi import ASGIHandler
from django.middleware.csrf import CsrfViewMiddleware

from gm_chat.transports.instant import is_instant
from gm_chat.transports.request_threads import RequestThreads


async def nobody(*_: Any) -> Any:
    raise AssertionError("not used")


SESSION, CSRF, AUTH = (kind(nobody) for kind in (SessionMiddleware, CsrfViewMiddleware, AuthenticationMiddleware))  # type: ignore[arg-type]  # an async get_response is allowed


class Recorder(ThreadPoolExecutor):
    """Does nothing that it is asked for, and keeps it."""

    jobs: tuple[Any, ...] = ()

    def submit(self, fn: Any, /, *_: Any, **__: Any) -> Future[Any]:
        self.jobs = (*self.jobs, fn)
        done: Future[Any] = Future()
        done.set_result(None)
        return done


async def job(function: Any, *arguments: Any) -> Any:
    """What asgiref sends to a thread for a call."""
    recorder = Recorder()
    async with ThreadSensitiveContext() as context:
        SyncToAsync.context_to_thread_executor[context] = recorder
        await sync_to_async(function, thread_sensitive=True)(*arguments)
    (only,) = recorder.jobs
    return only


def request(*, modified: bool = False) -> Any:
    return SimpleNamespace(session=SimpleNamespace(modified=modified), COOKIES={})


async def test_what_only_looks_at_the_request_is_instant() -> None:
    for method in (SESSION.process_request, CSRF.process_request, AUTH.process_request):
        assert is_instant(await job(method, request()))
    for method in (SESSION.process_response, CSRF.process_response):
        assert is_instant(await job(method, request(), object()))


async def test_a_check_that_may_call_a_view_is_not() -> None:
    assert not is_instant(await job(CSRF.process_view, request(), nobody, (), {}))


async def test_a_session_that_is_saved_is_not(settings: Any) -> None:
    assert not is_instant(await job(SESSION.process_response, request(modified=True), object()))
    settings.SESSION_SAVE_EVERY_REQUEST = True
    assert not is_instant(await job(SESSION.process_response, request(), object()))


async def test_a_session_of_another_kind_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    class SessionStore:
        pass

    monkeypatch.setattr(SESSION, "SessionStore", SessionStore)
    assert not is_instant(await job(SESSION.process_request, request()))


async def test_a_secret_that_is_kept_in_the_session_is_not(settings: Any) -> None:
    settings.CSRF_USE_SESSIONS = True
    assert not is_instant(await job(CSRF.process_request, request()))
    assert not is_instant(await job(CSRF.process_response, request(), object()))


async def test_a_project_s_own_code_is_not() -> None:
    class Own(AuthenticationMiddleware):
        pass

    assert not is_instant(await job(Own(nobody).process_request, request()))  # type: ignore[arg-type]  # as above
    assert not is_instant(await job(print, "hello"))
    assert not is_instant(await job(lambda: None))


@pytest.mark.parametrize("other", [print, object(), None])
def test_what_is_not_asgiref_s_is_not(other: Any) -> None:
    assert not is_instant(other)


async def test_django_s_own_middlewares_take_a_request_to_its_thread_three_times(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """When it begins and ends, for the receivers of its signals, and for the check of a view that may be protected."""
    hops: list[Any] = []
    submit = ThreadPoolExecutor.submit

    def noted(self: Any, fn: Any, /, *arguments: Any, **named: Any) -> Future[Any]:
        if self._thread_name_prefix == "gm-chat-request":
            hops.append(fn)
        return submit(self, fn, *arguments, **named)

    monkeypatch.setattr(ThreadPoolExecutor, "submit", noted)
    messages = [{"type": "http.request", "body": b"{}"}]
    sent: list[Any] = []

    async def receive() -> Any:
        return messages.pop() if messages else await asyncio.Event().wait()

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "GET", "path": "/chat/", "query_string": b"", "headers": []}
    await RequestThreads(ASGIHandler())(scope, receive, send)
    assert sent[0]["status"] == 405
    assert len(hops) == 3
