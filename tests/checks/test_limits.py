"""What the checks say about the rate limit."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.cache.backends.base import BaseCache
from django.test import override_settings
from testproject.checking import CHAT
from testproject.planting import plant

Run = Any
DJANGO_CACHES = "django.core.cache.backends"


@pytest.fixture(autouse=True)
def _one_host() -> Any:
    with override_settings(ALLOWED_HOSTS=["shop.example"]):
        yield


class Uncounted(BaseCache):
    """A cache that leaves counting to the base class."""

    def __init__(self, location: str, params: dict[str, Any]) -> None:
        super().__init__(params)


CACHES = [
    (f"{DJANGO_CACHES}.dummy.DummyCache", "keeps nothing", ""),
    (f"{DJANGO_CACHES}.locmem.LocMemCache", "", "counts for one process only"),
    (f"{DJANGO_CACHES}.filebased.FileBasedCache", "", "reads, then writes"),
    (f"{DJANGO_CACHES}.db.DatabaseCache", "", "reads, then writes"),
    (f"{DJANGO_CACHES}.redis.RedisCache", "", ""),
    ("planted.Uncounted", "", "reads, then writes"),
]


@pytest.mark.parametrize("alias", ["default", "limits"])
@pytest.mark.parametrize(("backend", "at_once", "deployed"), CACHES)
def test_a_cache_that_cannot_count_for_all_is_named(
    run: Run, monkeypatch: pytest.MonkeyPatch, alias: str, backend: str, at_once: str, deployed: str
) -> None:
    plant(monkeypatch, Uncounted=Uncounted)
    caches = {"default": {"BACKEND": f"{DJANGO_CACHES}.redis.RedisCache", "LOCATION": "redis://127.0.0.1:1"}}
    chat = {**CHAT, "rate_limit": {"cache": alias}}
    with override_settings(CACHES={**caches, alias: {"BACKEND": backend, "LOCATION": "redis://127.0.0.1:1"}}):
        found = run(chat=chat), run.deployed(chat)
    for findings, text in zip(found, (at_once, deployed), strict=True):
        assert list(findings) == ["W008"] * bool(text)
        if text:
            assert text in findings["W008"].msg
            assert f"The {alias} cache ({backend.rpartition('.')[2]})" in findings["W008"].msg
            assert f'CACHES["{alias}"] = ' in findings["W008"].hint


@pytest.mark.parametrize(
    ("limit", "caches", "named"),
    [
        ({"cache": "limits"}, {}, "'limits'"),
        ({}, {"BACKEND": "planted.NoCache"}, "'default'"),
        ({"store": "nowhere"}, {}, "'nowhere', which no plugin offers"),
    ],
)
def test_what_does_not_exist_cannot_count(
    run: Run, monkeypatch: pytest.MonkeyPatch, limit: Any, caches: Any, named: str
) -> None:
    plant(monkeypatch)
    default = {"BACKEND": f"{DJANGO_CACHES}.locmem.LocMemCache"}
    with override_settings(CACHES={"default": default | caches}):
        found = run(chat={**CHAT, "rate_limit": limit})
    assert list(found) == ["E002"]
    assert named in found["E002"].msg


def test_a_store_that_is_not_installed_comes_with_the_line_to_type(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    found = run(chat={**CHAT, "rate_limit": {"store": "redis"}, "disabled_plugins": ["ratelimit_redis"]})
    assert "pip install 'gm-chat[chat-redis-limits]'" in found["E002"].msg


def test_another_store_needs_no_cache(run: Run) -> None:
    caches = {"default": {"BACKEND": f"{DJANGO_CACHES}.dummy.DummyCache"}}
    chat = {**CHAT, "rate_limit": {"store": "database"}}
    with override_settings(CACHES=caches):
        assert (run(chat=chat), run.deployed(chat)) == ({}, {})


def test_without_a_budget_nothing_is_needed(run: Run) -> None:
    chat = {**CHAT, "rate_limit": {"requests": 0, "tokens": None, "input_tokens": -1, "store": "nowhere"}}
    caches = {"default": {"BACKEND": f"{DJANGO_CACHES}.dummy.DummyCache"}}
    with override_settings(CACHES=caches, USE_X_FORWARDED_HOST=True):
        assert (run(chat=chat), run.deployed(chat)) == ({}, {})
        assert list(run(chat={**CHAT, "rate_limit": {"requests": 0, "tokens": 5}})) == ["W008"]


@pytest.mark.parametrize(
    "told", [{"USE_X_FORWARDED_HOST": True}, {"SECURE_PROXY_SSL_HEADER": ("HTTP_X_FORWARDED_PROTO", "https")}]
)
def test_a_proxy_that_only_django_is_told_of(run: Run, told: Any) -> None:
    limit = {"store": "database"}
    with override_settings(**told):
        assert list(run.deployed({**CHAT, "rate_limit": limit})) == ["W015"]
        assert run.deployed({**CHAT, "rate_limit": {**limit, "trusted_proxies": ["10.0.0.0/8"]}}) == {}
    assert run.deployed({**CHAT, "rate_limit": limit}) == {}
