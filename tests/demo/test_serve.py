"""Ports."""

from __future__ import annotations

import socket

import pytest

from gm_chat.demo.serve import PortTakenError, bind, is_local, url_of


def test_a_free_port() -> None:
    with bind("127.0.0.1", 0) as listener:
        host, port = listener.getsockname()
        assert url_of(listener) == f"http://{host}:{port}"
        assert is_local(listener)


def test_all_interfaces_are_reached_on_this_machine() -> None:
    with bind("0.0.0.0", 0) as listener:  # noqa: S104 - what is tested
        assert url_of(listener).startswith("http://127.0.0.1:")
        assert not is_local(listener)


@pytest.mark.skipif(not socket.has_ipv6, reason="this machine has no IPv6")
def test_ipv6() -> None:
    try:
        listener = bind("::1", 0)
    except PortTakenError:
        pytest.skip("this machine has no IPv6 loopback")
    with listener:
        assert url_of(listener).startswith("http://[::1]:")


def test_a_taken_port_says_what_to_type() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(PortTakenError, match=rf"port {port} on 127.0.0.1 is taken; try --port {port + 1}"):
            bind("127.0.0.1", port)


@pytest.mark.parametrize(("host", "port"), [("no.such.host.invalid", 0), ("127.0.0.1", 99999), ("203.0.113.9", 0)])
def test_an_impossible_address_is_named(host: str, port: int) -> None:
    with pytest.raises(PortTakenError, match=f"cannot listen on '{host}' port {port}: "):
        bind(host, port)
