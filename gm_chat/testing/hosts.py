"""A plugin host for tests: from modules and objects, without anything being installed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gm_chat.host import PluginHost

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["FakeDistribution", "FakeEntryPoint", "make_host"]


@dataclass(frozen=True, slots=True)
class FakeDistribution:
    """The name and version that a plugin under test appears to have."""

    name: str
    version: str = "0"


@dataclass(frozen=True, slots=True)
class FakeEntryPoint:
    """An entry point that hands out an object, or raises it if it is an exception: what a failing import looks like."""

    name: str
    plugin: object
    dist: FakeDistribution

    def load(self) -> object:
        """Return the plugin, or raise."""
        if isinstance(self.plugin, BaseException):
            raise self.plugin
        return self.plugin


def make_host(
    plugins: Mapping[str, object] | None = None,
    /,
    *,
    core: Sequence[tuple[str, object]] = (),
    options: Mapping[str, Mapping[str, Any]] | None = None,
    strict: bool = True,
    **named: object,
) -> PluginHost:
    """Build a host that knows only these plugins.

    ``make_host(weather=acme_weather.plugin, options={"weather": {"city": "Ulm"}})``. Names that are no Python
    identifiers go into the mapping. With ``strict`` the first problem of any plugin fails the test; without it the
    host is returned with its ``problems``.
    """
    entry_points = [
        FakeEntryPoint(name, plugin, FakeDistribution(f"test-{name}"))
        for name, plugin in {**(plugins or {}), **named}.items()
    ]
    host = PluginHost.build(core=core, options=options or {}, entry_points=entry_points)
    if strict and host.problems:
        raise AssertionError("\n".join(["these plugins have problems:", *map(str, host.problems)]))
    return host
