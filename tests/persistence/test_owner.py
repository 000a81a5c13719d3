from __future__ import annotations

from gm_chat.persistence.owner import owner_of
from gm_chat.plugin import Actor


def test_nobody_owns_nothing() -> None:
    assert owner_of(Actor()) is None
    assert owner_of(Actor(session_key="")) is None
    assert owner_of(Actor(address="10.0.0.1")) is None


def test_a_user_owns_whatever_the_session() -> None:
    first, second = owner_of(Actor(user_id="7", session_key="a")), owner_of(Actor(user_id="7", session_key="b"))
    assert first == second
    assert first is not None
    assert (first.user_id, first.session_key, len(first.key)) == ("7", None, 64)


def test_keys_that_differ_by_case_or_kind_are_different() -> None:
    actors = [Actor(user_id="bob"), Actor(user_id="Bob"), Actor(session_key="bob"), Actor(session_key="Bob")]
    assert len({owner.key.lower() for actor in actors if (owner := owner_of(actor))}) == 4


def test_a_session_key_up_to_the_columns_length_stays_readable() -> None:
    owner = owner_of(Actor(session_key="k" * 64))
    assert owner is not None
    assert owner.session_key == "k" * 64


def test_a_key_with_a_lone_surrogate_has_a_digest() -> None:
    owner = owner_of(Actor(session_key="\ud800" * 70))
    assert owner is not None
    assert owner.session_key is not None
    assert len(owner.session_key) == 64
