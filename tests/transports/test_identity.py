from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import AnonymousUser
from django.contrib.sessions.backends.db import SessionStore
from django.test import Client

from gm_chat.plugin import Actor
from gm_chat.transports.identity import identify, load_again


def service(*, active: bool = True) -> Any:
    """A user that is no row of a table."""
    return SimpleNamespace(pk="service-1", is_authenticated=True, is_active=active)


def test_nobody_is_an_address() -> None:
    for user in (None, AnonymousUser()):
        assert identify(user, None, "10.0.0.1") == Actor(None, None, "10.0.0.1")
    assert load_again(None, None) == (None, None)


def test_a_user_that_is_no_row_is_taken_as_it_comes() -> None:
    user = service()
    assert identify(user, None, None) == Actor("service-1")
    assert load_again(user, None) == (user, None)
    assert load_again(service(active=False), None) == (None, None)


@pytest.mark.django_db
def test_a_row_is_read_again() -> None:
    user = get_user_model()._default_manager.create(username="ada")
    get_user_model()._default_manager.update(username="eve")
    again, _ = load_again(user, None)
    assert (again.pk, again.username) == (user.pk, "eve")
    get_user_model()._default_manager.all().delete()
    assert load_again(user, None) == (None, None)


@pytest.mark.django_db
def test_who_logged_in_by_a_session_is_found_by_it_alone() -> None:
    user = get_user_model()._default_manager.create(username="ada")
    client = Client()
    client.force_login(user)
    session = SessionStore(client.cookies["sessionid"].value)
    assert session["_auth_user_id"]  # as loaded when the connection was opened
    assert load_again(user, session)[0] == user
    client.logout()
    again, current = load_again(user, session)
    assert again.is_anonymous
    assert identify(again, current, None, create=False) == Actor()


@pytest.mark.django_db
def test_looking_creates_nothing() -> None:
    session = SessionStore("x" * 32)
    assert identify(None, session, None, create=False) == Actor()
    assert not session.modified
    created = identify(None, session, None)
    assert created.session_key == session.session_key != "x" * 32


@pytest.mark.django_db
class TestSessionsOfDjangosTable:
    def stored(self, **values: Any) -> SessionStore:
        session = SessionStore()
        session.update(values)
        session.save()
        return SessionStore(session.session_key)

    def test_one_statement_loads_it(self, django_assert_num_queries: Any) -> None:
        session = self.stored(colour="blue")
        with django_assert_num_queries(1):
            identify(None, session, None)
            assert session["colour"] == "blue"
        assert session.accessed
        assert not session.modified

    def test_what_is_loaded_is_not_loaded_again(self, django_assert_num_queries: Any) -> None:
        session = self.stored(colour="blue")
        session["colour"] = "red"
        with django_assert_num_queries(0):
            identify(None, session, None)
        assert session["colour"] == "red"

    def test_an_expired_one_is_gone(self) -> None:
        session = self.stored(colour="blue")
        session.set_expiry(-1)
        session.save()
        expired = SessionStore(session.session_key)
        assert identify(None, expired, None, create=False) == Actor()
        assert expired.session_key is None

    def test_one_of_another_kind_loads_itself(self) -> None:
        class Own(SessionStore):
            def load(self) -> dict[str, Any]:
                return {"colour": "green"}

        session = Own(self.stored(colour="blue").session_key)
        identify(None, session, None)
        assert session["colour"] == "green"
