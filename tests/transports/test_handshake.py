from __future__ import annotations

from typing import Any

import pytest

from gm_chat.transports.handshake import is_welcome

ELSEWHERE = ["https://shop.example", "https://.example.org:8443"]


def socket(*origins: str) -> dict[str, Any]:
    return {"type": "websocket", "headers": [(b"origin", origin.encode("latin-1")) for origin in origins]}


@pytest.mark.parametrize(
    ("origin", "welcome"),
    [
        ("https://shop.example", True),
        ("https://SHOP.example", True),
        ("https://shop.example:443", True),
        ("http://shop.example", False),
        ("https://shop.example:444", False),
        ("https://shop.example.evil.test", False),
        ("https://evil.test/https://shop.example", False),
        ("https://a.example.org:8443", True),
        ("https://a.example.org", False),
        ("null", False),
        ("", False),
        ("shop.example", False),
        ("https://shop.example:port", False),
        ("https://[shop.example", False),
        ("https://", False),
        ("\xff", False),
    ],
)
def test_a_list_of_origins_is_exact(origin: str, welcome: bool) -> None:
    assert is_welcome(socket(origin), ELSEWHERE) is welcome


@pytest.mark.parametrize("listed", [None, ()], ids=str)
@pytest.mark.parametrize(
    ("origin", "welcome"),
    [
        ("https://chat.test", True),
        ("http://chat.test:8000", True),
        ("http://evil.test", False),
        ("null", False),
        ("", False),
    ],
)
def test_without_a_list_it_must_be_one_of_the_project_s_hosts(
    origin: str, welcome: bool, listed: Any, settings: Any
) -> None:
    settings.ALLOWED_HOSTS = ["chat.test"]
    assert is_welcome(socket(origin), listed) is welcome


def test_hosts_are_read_when_a_socket_is_opened(settings: Any) -> None:
    for host in ("one.test", "two.test"):
        settings.ALLOWED_HOSTS = [host]
        assert is_welcome(socket("http://one.test"), None) is (host == "one.test")


def test_a_developer_s_own_machine_is_welcome_as_in_django(settings: Any) -> None:
    settings.ALLOWED_HOSTS, settings.DEBUG = [], True
    assert is_welcome(socket("http://localhost:8000"), None)
    assert not is_welcome(socket("http://evil.test"), None)


def test_a_client_without_an_origin_is_refused_unless_all_are_allowed(settings: Any) -> None:
    settings.ALLOWED_HOSTS = ["chat.test"]
    assert not is_welcome(socket(), None)
    assert not is_welcome(socket(), ELSEWHERE)
    assert is_welcome(socket(), ["*"])


def test_of_two_origins_one_cannot_hide_the_other() -> None:
    assert not is_welcome(socket("https://shop.example", "https://evil.test"), ELSEWHERE)
    assert not is_welcome(socket("https://evil.test", "https://shop.example"), ELSEWHERE)
