"""Where a visitor comes from: the peer, or whoever the project's own proxies say that they speak for."""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import TYPE_CHECKING, TypeAlias

from gm_chat.settings.model import UNIX_SOCKET

if TYPE_CHECKING:
    from collections.abc import Sequence
    from ipaddress import IPv4Network, IPv6Network

__all__ = ["visitor_address"]

Address: TypeAlias = IPv4Address | IPv6Address


def visitor_address(peer: str | None, forwarded: str | None, trusted: Sequence[str]) -> str | None:
    """The visitor's address, given the peer's, the value of ``X-Forwarded-For``, and ``rate_limit["trusted_proxies"]``.

    Each proxy adds at the right end who asked it, so the first one from there that is no proxy of ours is the visitor.
    What stands to the left of it may be made up. Where the header ends early, or in nonsense, the last proxy counts.
    """
    if not trusted:
        return peer or None
    networks = _networks(tuple(trusted))
    current = None if not peer else _parsed(peer)
    if not _is_ours(current, networks) if current is not None else peer or UNIX_SOCKET not in trusted:
        return peer or None
    for entry in reversed((forwarded or "").split(",")):
        said = _parsed(entry)
        if said is None:
            break
        current = said
        if not _is_ours(said, networks):
            break
    return None if current is None else str(current)


@lru_cache(maxsize=8)
def _networks(trusted: tuple[str, ...]) -> tuple[IPv4Network | IPv6Network, ...]:
    return tuple(ip_network(item) for item in trusted if item != UNIX_SOCKET)


def _is_ours(address: Address, networks: Sequence[IPv4Network | IPv6Network]) -> bool:
    return any(address in network for network in networks)


def _parsed(text: str) -> Address | None:
    """An address as proxies write it: with a port, in brackets, in quotes, as IPv4 in IPv6."""
    text = text.strip().strip('"')
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address
