"""Run the data layer's hostile tests on each database: ``python .ci/servers.py [SERVER...] [-- PYTEST ARGUMENTS]``.

Random plans of both read tools under random rights against a naive walk, deadlines, hidden rows and hostile arguments,
on SQLite, PostgreSQL and MariaDB. A server that does not answer is left out, unless GM_CHAT_REQUIRE names it.
"""

import os
import socket
import subprocess
import sys

SERVERS = {
    "sqlite": None,
    "postgres": (os.environ.get("PGHOST", "127.0.0.1"), int(os.environ.get("PGPORT") or 5432)),
    "mariadb": (os.environ.get("MYSQL_HOST", "localhost"), 3306),
}
TESTS = (
    *("tests/managers/test_executor_fuzz.py", "tests/managers/test_aggregation_fuzz.py"),
    *("tests/managers/test_executor.py", "tests/managers/test_deadline.py"),
    *("tests/tools/test_hidden_rows.py", "tests/tools/test_hostile_arguments.py"),
)


def answers(place: tuple[str, int] | None) -> bool:
    """Whether something listens there."""
    if place is None:
        return True
    try:
        socket.create_connection(place, timeout=3).close()
    except OSError:
        return False
    return True


def main(arguments: list[str]) -> int:
    cut = arguments.index("--") if "--" in arguments else len(arguments)
    chosen, options = arguments[:cut] or list(SERVERS), arguments[cut + 1 :]
    required = os.environ.get("GM_CHAT_REQUIRE", "").split(",")
    failed, ran = [], []
    for server in chosen:
        if not answers(SERVERS[server]):
            print(f"{server}: nothing answers at {SERVERS[server]}", flush=True)
            failed += [server] * (server in required)
            continue
        print(f"\n{server}", flush=True)
        environment = {**os.environ, "GM_CHAT_TEST_SERVER": "" if server == "sqlite" else server}
        command = [sys.executable, "-m", "pytest", "-q", "-n", "2", *TESTS, *options]
        ran.append(server)
        result = subprocess.run(command, check=False, env=environment)  # noqa: S603 (words of this file and of whoever calls it)
        failed += [server] * bool(result.returncode)
    print(f"\nran on {', '.join(ran)}; failed: {', '.join(failed) or 'none'}")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
