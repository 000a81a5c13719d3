"""Whose address a visitor's is taken for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gm_chat.transports.address import visitor_address

PROXIES = ("10.0.0.0/8", "192.168.1.7", "fd00::/8", "unix")


@pytest.mark.parametrize(
    ("peer", "forwarded", "expected"),
    [
        ("203.0.113.5", None, "203.0.113.5"),
        ("203.0.113.5", "1.1.1.1", "203.0.113.5"),
        ("10.0.0.1", "203.0.113.5", "203.0.113.5"),
        ("10.0.0.1", "6.6.6.6, 203.0.113.5", "203.0.113.5"),
        ("10.0.0.1", "6.6.6.6, 203.0.113.5, 10.9.9.9,192.168.1.7", "203.0.113.5"),
        ("10.0.0.1", None, "10.0.0.1"),
        ("10.0.0.1", "", "10.0.0.1"),
        ("10.0.0.1", "10.0.0.3, 10.0.0.2", "10.0.0.3"),
        ("10.0.0.1", "203.0.113.5, unknown, 10.0.0.2", "10.0.0.2"),
        ("10.0.0.1", "203.0.113.5:4711", "203.0.113.5"),
        ("10.0.0.1", '"[2001:db8::1]:4711"', "2001:db8::1"),
        ("10.0.0.1", "2001:db8::1", "2001:db8::1"),
        ("::ffff:10.0.0.1", "::ffff:203.0.113.5", "203.0.113.5"),
        ("fd00::1", "203.0.113.5", "203.0.113.5"),
        ("192.168.1.8", "203.0.113.5", "192.168.1.8"),
        ("testclient", "203.0.113.5", "testclient"),
        (None, "203.0.113.5", "203.0.113.5"),
        ("", "203.0.113.5", "203.0.113.5"),
        (None, None, None),
    ],
)
def test_the_first_that_is_no_proxy_of_ours(peer: str | None, forwarded: str | None, expected: str | None) -> None:
    assert visitor_address(peer, forwarded, PROXIES) == expected


@pytest.mark.parametrize("peer", ["10.0.0.1", None, ""])
def test_without_trust_nothing_that_is_forwarded_counts(peer: str | None) -> None:
    assert visitor_address(peer, "203.0.113.5", ()) == (peer or None)


def test_a_socket_in_the_file_system_must_be_named() -> None:
    assert visitor_address(None, "203.0.113.5", ("10.0.0.0/8",)) is None


@given(st.text(max_size=60), st.sampled_from(["10.0.0.1", "203.0.113.5", None]))
def test_whatever_is_forwarded_makes_no_trouble(forwarded: str, peer: str | None) -> None:
    found = visitor_address(peer, forwarded, PROXIES)
    assert found is None or len(found) < 46
    assert visitor_address("203.0.113.5", forwarded, PROXIES) == "203.0.113.5"


@given(st.text(max_size=40))
def test_a_visitor_cannot_choose_an_address(made_up: str) -> None:
    assert visitor_address("10.0.0.1", f"{made_up}, 203.0.113.5", PROXIES) == "203.0.113.5"
