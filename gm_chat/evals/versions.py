"""Which versions a result holds for: of gm-chat, of the provider's distribution, and of the SDK that it calls."""

from __future__ import annotations

import importlib.metadata as metadata
import re
from typing import Any, Final

__all__ = ["versions_of"]

CORE: Final = "gm-chat"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def versions_of(provider: Any) -> dict[str, str]:
    """Return versions by distribution, sorted by name: of a provider's (an object or its class), and what it requires.

    What only an extra brings, and what is not installed, is left out.
    """
    kind = provider if isinstance(provider, type) else type(provider)
    own = _distribution(kind.__module__.partition(".")[0])
    required = [] if own in (None, CORE) else [_required(line) for line in metadata.requires(own or "") or ()]
    names = {CORE, own, *required} - {None}
    found = {name: _version(name) for name in names if name is not None}
    return {name: version for name, version in sorted(found.items()) if version is not None}


def _distribution(package: str) -> str | None:
    """The distribution of a top-level package: a plugin is known by its entry point, also where it is edited."""
    for entry_point in metadata.entry_points(group="gm_chat"):
        if entry_point.module.partition(".")[0] == package and entry_point.dist is not None:
            return entry_point.dist.name
    return next(iter(metadata.packages_distributions().get(package, ())), CORE if package == "gm_chat" else None)


def _required(line: str) -> str | None:
    found = _NAME.match(line)
    return None if found is None or "extra ==" in line else found[0]


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
