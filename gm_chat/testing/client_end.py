"""Whether a client has read what a server in the same process sent it: no clock can tell, its socket can."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["ClientEnd", "open_sockets"]

ROUNDS: Final = 4
"""Turns of the event loop from "read by the client's transport" to "handled, and the next read awaited"."""
SPINS: Final = 200
"""Turns after which a client that does not read is looked at every millisecond only."""


class ClientEnd:
    """The client's end of a loopback connection, found among this process's own sockets by its address."""

    def __init__(self, address: tuple[str, int]) -> None:
        """``address`` is what the server's end calls its peer. An end in another process is given 1 ms."""
        self._number = next((number for number in _sockets() if _address(number) == address), None)

    async def has_read(self) -> None:
        """Wait until nothing that was sent is unread, and the client has had the time to handle it."""
        if self._number is None:
            await asyncio.sleep(0.001)
            return
        spins = 0
        while _unread(self._number):
            spins += 1
            await asyncio.sleep(0 if spins < SPINS else 0.001)
        for _ in range(ROUNDS):
            await asyncio.sleep(0)


def open_sockets() -> int:
    """How many sockets this process has open; 0 where the system does not tell."""
    return sum(1 for _ in _sockets())


def _sockets() -> Iterator[int]:
    """Yield the descriptors of this process's sockets, newest first."""
    if sys.platform == "win32":
        return
    for number in sorted(map(int, os.listdir("/dev/fd")), reverse=True):
        try:
            if stat.S_ISSOCK(os.fstat(number).st_mode):
                yield number
        except OSError:  # closed meanwhile, as the one that listed them is
            continue


def _address(number: int) -> tuple[str, int] | None:
    try:
        borrowed = socket.socket(fileno=number)
    except OSError:
        return None
    try:
        name = borrowed.getsockname()
        return tuple(name[:2]) if borrowed.family in (socket.AF_INET, socket.AF_INET6) else None
    except OSError:
        return None
    finally:
        borrowed.detach()  # it is the client's, who closes it


def _unread(number: int) -> int:
    """The bytes that wait in a socket; 0 also if it was closed."""
    import fcntl  # lazy: Windows lacks them, where no socket is found
    import termios

    try:
        waiting = fcntl.ioctl(number, termios.FIONREAD, b"\0\0\0\0")
    except OSError:
        return 0
    return int.from_bytes(waiting, sys.byteorder)
