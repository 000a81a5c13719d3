"""Running the checks over a chat of a test's own making."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.test import override_settings
from testproject.checking import CHAT, PART, EchoPlugin

from gm_chat import checks
from gm_chat.managers import registry
from gm_chat.plugin import RateLimitStoreSpec, hookimpl
from gm_chat.testing.hosts import make_host
from gm_chat.testing.memory_counts import MemoryRateLimitStore
from gm_chat.wiring.catalogs import Catalogs, load_catalogs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from django.core.checks import CheckMessage


class Stores:
    """The rate-limit stores that every chat has."""

    @hookimpl
    def gm_chat_rate_limit_stores(self) -> list[RateLimitStoreSpec]:
        return [RateLimitStoreSpec(name=name, build=MemoryRateLimitStore) for name in ("cache", "database")]


def welcome(user: object, scope: object) -> bool:
    """A permission, so that only a test of its absence sees it absent."""
    return True


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run the checks with a chat of this test's own making and return the findings by id."""

    class Findings:
        """``run()`` gives what ``manage.py check`` says, ``run.deployed()`` what ``--deploy`` adds."""

        def __call__(self, *args: Any, **kwargs: Any) -> dict[str, CheckMessage]:
            return check(*args, **kwargs)

        def deployed(self, chat: Mapping[str, Any] = CHAT) -> dict[str, CheckMessage]:
            with override_settings(GM_CHAT={"permission": welcome, **chat}):
                return {str(item.id).removeprefix("gm_chat."): item for item in checks.check_deployment()}

    def check(
        plugin: object = None, *, managers: object = (PART,), chat: Mapping[str, Any] = CHAT, **plugins: object
    ) -> dict[str, CheckMessage]:
        class Runtime:
            host = make_host({"echo": plugin or EchoPlugin(), "stores": Stores(), **plugins}, strict=False)

            @property
            def described(self) -> Any:
                if isinstance(managers, Exception):
                    raise managers
                return managers

            @property
            def catalogs(self) -> Catalogs:
                specs = [(self.host.catalog_origins[spec.name], spec) for spec in self.host.catalogs]
                return load_catalogs(specs, {info.name: info for info in self.described})

        monkeypatch.setattr(checks, "get_runtime", Runtime)
        with override_settings(GM_CHAT=dict(chat)):
            found = checks.check_chat()
        assert len({item.id for item in found}) == len(found), found
        return {str(item.id).removeprefix("gm_chat."): item for item in found}

    return Findings()


@pytest.fixture(autouse=True)
def _no_declarations() -> Iterator[None]:
    with registry.using():
        yield
