from __future__ import annotations

import asyncio
import threading

import pytest

from gm_chat.providers.pool import ClientPool, open_clients


class Client:
    """Notes the loop in which it was closed."""

    def __init__(self) -> None:
        self.closed_in: asyncio.AbstractEventLoop | None = None

    async def close(self) -> None:
        await asyncio.sleep(0)  # as a real one does, it needs a running loop to close
        self.closed_in = asyncio.get_running_loop()


@pytest.fixture
def pool() -> ClientPool[Client]:
    return ClientPool(Client.close)


async def test_one_client_for_each_configuration(pool) -> None:
    first = await pool.get(("a", 1), Client)
    assert await pool.get(("a", 1), Client) is first
    assert await pool.get(("a", 2), Client) is not first


def test_the_clients_of_all_pools_and_loops_are_counted(pool) -> None:
    async def main(other: ClientPool[Client]) -> int:
        for key in ("a", "b"):
            await pool.get(key, Client)
        await other.get("a", Client)
        return open_clients() - before

    before = open_clients()
    assert asyncio.run(main(ClientPool(Client.close))) == 3
    assert open_clients() == before


def test_a_client_is_closed_in_its_own_loop_when_that_ends(pool) -> None:
    async def main() -> tuple[Client, Client, asyncio.AbstractEventLoop]:
        return await pool.get("a", Client), await pool.get("b", Client), asyncio.get_running_loop()

    first = asyncio.run(main())
    second = asyncio.run(main())
    for one, other, loop in (first, second):
        assert one.closed_in is other.closed_in is loop
    assert first[0] is not second[0]
    assert not pool._loops


def test_loops_in_many_threads_do_not_share(pool) -> None:
    clients: list[Client] = []
    barrier = threading.Barrier(4)

    async def main() -> None:
        barrier.wait(timeout=5)
        client = await pool.get("a", Client)
        await asyncio.sleep(0.01)
        assert client.closed_in is None
        clients.append(client)

    threads = [threading.Thread(target=asyncio.run, args=(main(),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=5)
    assert len(set(map(id, clients))) == 4
    assert all(client.closed_in is not None for client in clients)


def test_a_loop_that_was_closed_without_ceremony_is_forgotten(pool) -> None:
    loop = asyncio.new_event_loop()
    try:
        client = loop.run_until_complete(pool.get("a", Client))
    finally:
        loop.close()
    other = asyncio.run(pool.get("a", Client))
    assert other is not client
    assert client.closed_in is None
    assert not pool._loops


def test_a_client_that_cannot_be_made_leaves_nothing_behind(pool) -> None:
    def fail() -> Client:
        raise RuntimeError("no key")

    async def main() -> Client:
        with pytest.raises(RuntimeError, match="no key"):
            await pool.get("a", fail)
        return await pool.get("a", Client)

    assert asyncio.run(main()).closed_in is not None
