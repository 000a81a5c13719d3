"""Which synchronous code of Django's needs no thread: what looks at the request and at nothing else.

The way to a thread and back costs a busy server 0.1 to 0.2 ms of processor time, and Django takes it twice for each of
its middlewares. Most of them then only set an attribute, or read one. Named here are the methods of Django's own
classes of which that is known, and when: not those of subclasses, not what reads or writes a session, not what may
call a view of the project. Everything else keeps its thread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.conf import settings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["is_instant"]


def is_instant(job: Any) -> bool:
    """Whether what asgiref's ``sync_to_async`` is about to send to a thread may as well run where it is.

    The job is asgiref's: a call of its own, whose last argument is the function with its arguments. One that is made
    otherwise is not recognised, and gets its thread.
    """
    try:
        method, request = job.func.__self__.func, job.args[-1].args[0]
        owner = type(method.__self__)
        condition = _CONDITIONS.get(f"{owner.__module__}.{owner.__qualname__}.{method.__name__}")
        return condition is not None and condition(method.__self__, request)
    except (AttributeError, IndexError):
        return False


def _always(*_: Any) -> bool:
    return True


def _makes_a_session_of_djangos(middleware: Any, _: Any) -> bool:
    return str(middleware.SessionStore.__module__).startswith("django.contrib.sessions.backends.")


def _saves_no_session(_: Any, request: Any) -> bool:
    return not (request.session.modified or settings.SESSION_SAVE_EVERY_REQUEST)


def _keeps_the_secret_in_a_cookie(*_: Any) -> bool:
    return not settings.CSRF_USE_SESSIONS


# By name: the classes cannot be imported before Django is set up.
_CONDITIONS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "django.contrib.auth.middleware.AuthenticationMiddleware.process_request": _always,
    "django.contrib.sessions.middleware.SessionMiddleware.process_request": _makes_a_session_of_djangos,
    "django.contrib.sessions.middleware.SessionMiddleware.process_response": _saves_no_session,
    "django.middleware.csrf.CsrfViewMiddleware.process_request": _keeps_the_secret_in_a_cookie,
    "django.middleware.csrf.CsrfViewMiddleware.process_response": _keeps_the_secret_in_a_cookie,
}
