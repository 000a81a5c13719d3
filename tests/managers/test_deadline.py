from __future__ import annotations

import itertools
import os
import time
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from django.db import DatabaseError, OperationalError, connection, connections, transaction
from django.db.models.expressions import RawSQL
from testproject.desk import Desk, actor_of
from testproject.shop import models as shop
from testproject.shop_rows import fill_shop

from gm_chat.managers import deadline as deadlines
from gm_chat.managers import registry
from gm_chat.managers.aggregate import build_aggregate
from gm_chat.managers.aggregation import execute_aggregate
from gm_chat.managers.binding import ComputedField
from gm_chat.managers.deadline import guard
from gm_chat.managers.executor import execute_plan
from gm_chat.plugin import ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from django.db.models import QuerySet

ENDLESS = {
    "sqlite": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000000) "
    "SELECT COUNT(*) FROM n",
    "postgresql": "SELECT COUNT(*) FROM generate_series(1, 1000000000000)",
    "mysql": "SELECT COUNT(*) FROM seq_1_to_100000000000 WHERE MOD(seq, 7) = 1",
}
MANY_ROWS = {
    "sqlite": ENDLESS["sqlite"].replace("COUNT(*)", "i"),
    "postgresql": "SELECT i FROM generate_series(1, 400000) AS i",
    "mysql": "SELECT seq FROM seq_1_to_400000",
}


def run(sql: str, alias: str = "default", *params: Any) -> Any:
    with connections[alias].cursor() as cursor:
        cursor.execute(sql, params)
        return list(cursor.fetchall())


def soon(seconds: float = 0.2) -> float:
    return time.monotonic() + seconds


def test_a_statement_ends_at_the_deadline(db: None) -> None:
    start = time.monotonic()
    with pytest.raises(ToolError) as caught, guard("default", soon()):
        run(ENDLESS[connection.vendor])
    assert caught.value.code == "timeout"
    assert time.monotonic() - start < 2
    assert run("SELECT 1") == [(1,)]  # the guard is gone, and the connection works


@pytest.mark.parametrize("deadline", [None, 60])
def test_conditions_nested_too_deeply_are_told(db: None, deadline: int | None) -> None:
    if connection.vendor != "sqlite":
        pytest.skip("a limit of SQLite's parser")
    with pytest.raises(ToolError) as caught, guard("default", deadline and soon(deadline)):
        run("SELECT " + "(SELECT " * 60 + "1" + ")" * 60)
    assert caught.value.code == "too_large"
    with pytest.raises(OperationalError), guard("default", deadline and soon(deadline)):
        run("SELECT nothing FROM nowhere")


def test_fetching_ends_at_the_deadline(db: None) -> None:
    def fetch_on() -> None:
        with guard("default", soon()), connection.cursor() as cursor:
            while True:
                cursor.execute(MANY_ROWS[connection.vendor])
                while cursor.fetchmany(100):
                    pass

    with pytest.raises(ToolError, match="too long"):
        fetch_on()


def test_the_deadline_is_one_for_all_statements(db: None) -> None:
    def run_on() -> None:
        with guard("default", soon()):
            for _ in range(100):
                run("SELECT 1")
                time.sleep(0.02)

    with pytest.raises(ToolError, match="too long"):
        run_on()


def test_nothing_is_guarded_without_a_deadline(db: None) -> None:
    with guard("default", None):
        assert not connection.execute_wrappers
        assert run("SELECT 1") == [(1,)]


def test_other_failures_stay_what_they_are(db: None) -> None:
    with pytest.raises(DatabaseError, match=r"no such table|does not exist|doesn.t exist"), guard("default", soon(60)):
        run("SELECT * FROM nowhere")


def test_a_plan_runs_under_its_deadline(db: None) -> None:
    desk = Desk(registry.bindings(), actor_of(fill_shop(parts=5)["staff"]))
    plan = desk.plan("PartManager", ["name", {"tags": ["name"]}])
    assert execute_plan(plan, desk.bindings, desk.actor, deadline=soon(60)).total_count == 5
    with pytest.raises(ToolError) as caught:
        execute_plan(plan, desk.bindings, desk.actor, deadline=time.monotonic() - 1)
    assert caught.value.code == "timeout"


# --- whatever takes the time, on whatever database ----------------------------------------------------------------

LIMIT = 0.5


def one_heavy_statement(rows: QuerySet[Any]) -> QuerySet[Any]:
    endless = RawSQL(f"({ENDLESS[connection.vendor]})", ())  # noqa: S611 - a constant
    return rows.annotate(endless=endless).filter(endless__gt=0)


def many_small_statements(rows: QuerySet[Any]) -> QuerySet[Any]:
    while rows.exists():
        pass
    return rows


def a_slow_fetch(rows: QuerySet[Any]) -> QuerySet[Any]:
    """Many rows that the driver makes objects of when all that the server does is done."""
    for _ in itertools.count():
        with connection.cursor() as cursor:
            cursor.execute(MANY_ROWS[connection.vendor])
            while cursor.fetchmany(100):
                pass
    return rows


@pytest.mark.parametrize("slow", [one_heavy_statement, many_small_statements, a_slow_fetch])
@pytest.mark.parametrize("tool", ["query", "aggregate"])
def test_the_guard_fires(db: None, slow: Callable[..., Any], tool: str) -> None:
    """Without it each of these would go on for ever, or for hours."""
    user = fill_shop(parts=5)["staff"]
    bindings = registry.bindings()
    rule = replace(bindings["PartManager"], visible_to=lambda rows, actor: slow(rows))
    desk = Desk({**bindings, "PartManager": rule}, actor_of(user))
    with pytest.raises(ToolError) as caught:
        ask(desk, tool, deadline=soon(LIMIT))
    assert caught.value.code == "timeout"
    free = Desk(bindings, desk.actor)  # the connection is as it was
    assert ask(free, tool, deadline=soon(60)) == ask(free, tool, deadline=None)
    shop.Tag.objects.create(name="written")


def ask(desk: Desk, tool: str, *, deadline: float | None) -> Any:
    if tool == "query":
        plan = desk.plan("PartManager", ["name", {"tags": ["name"]}])
        return execute_plan(plan, desk.bindings, desk.actor, deadline=deadline).data
    sums = build_aggregate({"manager": "PartManager", "measures": "median(price)"}, desk.view, max_results=200)
    return execute_aggregate(sums, desk.bindings, desk.actor, deadline=deadline).data


def test_python_stops_between_two_rows(db: None) -> None:
    """What Python computes of a row is not stopped, but it is the last one."""
    user, computed = fill_shop(parts=5)["staff"], []
    bindings = registry.bindings()
    deadline = soon(LIMIT)

    def compute(part: Any, actor: Any) -> int:
        while time.monotonic() < deadline:
            pass
        computed.append(part)
        return 1

    rule = replace(bindings["PartManager"], computed={"gross": ComputedField(compute=compute, type="integer")})
    desk = Desk({**bindings, "PartManager": rule}, actor_of(user))
    with pytest.raises(ToolError, match="too long"):
        execute_plan(desk.plan("PartManager", ["gross"]), desk.bindings, desk.actor, deadline=deadline)
    assert len(computed) == 1


def test_large_values_stop_between_two_rows(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    user, deadline, made = fill_shop(parts=5)["staff"], soon(LIMIT), []

    def convert(value: Any) -> Any:
        while time.monotonic() < deadline:
            pass
        made.append(value)
        return value

    monkeypatch.setattr("gm_chat.managers.executor.CONVERT", {"json": convert})
    desk = Desk(registry.bindings(), actor_of(user))
    with pytest.raises(ToolError, match="too long"):
        execute_plan(desk.plan("PartManager", ["attributes"]), desk.bindings, desk.actor, deadline=deadline)
    assert len(made) == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("within", [True, False])
def test_what_reads_cannot_write(within: bool) -> None:
    if within and connection.vendor == "mysql":
        pytest.skip("MariaDB makes no transaction read-only that has begun")
    with transaction.atomic() if within else nullcontext():
        with pytest.raises(DatabaseError), guard("default", soon(60)), transaction.atomic():
            shop.Tag.objects.create(name="by a read")
        with guard("default", soon(60), read_only=False):
            shop.Tag.objects.create(name="by a write")
        shop.Tag.objects.create(name="by nobody's leave")
    assert set(shop.Tag.objects.values_list("name", flat=True)) == {"by a write", "by nobody's leave"}


# --- servers, where there are any -------------------------------------------------------------------------------


def _reachable(alias: str, settings: dict[str, Any], service: str) -> Iterator[str]:
    defaults = connections.databases["default"]
    connections.databases[alias] = {**defaults, "OPTIONS": {}, "PASSWORD": "", "USER": "", "PORT": "", **settings}
    try:
        connections[alias].ensure_connection()
    except Exception as error:
        if service in os.environ.get("GM_CHAT_REQUIRE", "").split(","):
            raise
        pytest.skip(f"no {service} to test with: {type(error).__name__}")
    try:
        yield alias
    finally:
        connections[alias].close()
        del connections.databases[alias]
        del connections[alias]


@pytest.fixture
def postgresql(django_db_blocker: Any) -> Iterator[str]:
    pytest.importorskip("psycopg")
    with django_db_blocker.unblock():
        settings = {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": os.environ.get("PGDATABASE", "test"),
            "USER": os.environ.get("PGUSER", "postgres"),
            "HOST": os.environ.get("PGHOST", "127.0.0.1"),
        }
        yield from _reachable("deadline_postgresql", settings, "postgres")


def test_postgresql_cancels_the_statement_itself(postgresql: str) -> None:
    start = time.monotonic()
    with pytest.raises(ToolError) as caught, guard(postgresql, soon()):
        run("SELECT pg_sleep(30)", postgresql)
    assert caught.value.code == "timeout"
    assert time.monotonic() - start < 5
    assert run("SHOW statement_timeout", postgresql) == [("0",)]


def test_postgresql_gives_each_statement_what_is_left(postgresql: str) -> None:
    with guard(postgresql, soon(50)):
        (first,) = run("SELECT setting::int FROM pg_settings WHERE name = 'statement_timeout'", postgresql)
        time.sleep(0.05)
        (second,) = run("SELECT setting::int FROM pg_settings WHERE name = 'statement_timeout'", postgresql)
    assert 0 < second[0] < first[0] <= 50_000


def test_postgresql_restores_an_outer_transaction(postgresql: str) -> None:
    show = "SELECT current_setting('statement_timeout'), current_setting('transaction_read_only')"
    with transaction.atomic(using=postgresql):
        run("SELECT set_config('statement_timeout', '7s', true)", postgresql)
        with guard(postgresql, soon(60)):
            assert run(show, postgresql)[0][1] == "on"
        assert run(show, postgresql) == [("7s", "off")]
        with pytest.raises(ToolError), guard(postgresql, soon()):
            run("SELECT pg_sleep(30)", postgresql)
        assert run(show, postgresql) == [("7s", "off")]
        with guard(postgresql, soon(60), read_only=False):
            assert run(show, postgresql)[0][1] == "off"


@pytest.fixture
def mariadb(django_db_blocker: Any) -> Iterator[str]:
    with django_db_blocker.unblock():
        settings = {
            "ENGINE": "django.db.backends.mysql",
            "NAME": os.environ.get("MYSQL_DATABASE", "test"),
            "USER": os.environ.get("MYSQL_USER", "root"),
            "HOST": os.environ.get("MYSQL_HOST", "127.0.0.1"),
        }
        yield from _reachable("deadline_mariadb", settings, "mariadb")


def test_mariadb_stops_the_statement_and_restores_the_session(mariadb: str) -> None:
    run("SET SESSION max_statement_time = 77", mariadb)
    start = time.monotonic()
    with pytest.raises(ToolError) as caught, guard(mariadb, soon()):
        run("SELECT SLEEP(30)", mariadb)
    assert caught.value.code == "timeout"
    assert time.monotonic() - start < 5
    assert float(run("SELECT @@SESSION.max_statement_time", mariadb)[0][0]) == 77


def stop_at_look(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Let the time be over at the given look at the clock, however fast the machine is."""
    looks = itertools.count(1)

    def left(_: float) -> float:
        if next(looks) >= number:
            raise ToolError("timeout", "over")
        return 60.0

    monkeypatch.setattr(deadlines, "_left", left)


def test_mariadb_fetches_in_batches_what_the_driver_would_fetch_at_once(
    mariadb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = run("SELECT CONNECTION_ID()", mariadb)
    stop_at_look(monkeypatch, 4)
    with pytest.raises(ToolError) as caught, guard(mariadb, soon(60)):
        run(MANY_ROWS["mysql"], mariadb)
    assert caught.value.code == "timeout"
    assert run("SELECT CONNECTION_ID()", mariadb) != before  # the rest went with it
    assert run("SELECT @@SESSION.tx_read_only", mariadb) == [(0,)]


def test_mariadb_keeps_the_transaction_of_the_caller(mariadb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with transaction.atomic(using=mariadb):
        before = run("SELECT CONNECTION_ID()", mariadb)
        with monkeypatch.context() as patch:
            stop_at_look(patch, 4)
            with pytest.raises(ToolError), guard(mariadb, soon(60)):
                run(MANY_ROWS["mysql"], mariadb)
        assert run("SELECT CONNECTION_ID()", mariadb) == before


def test_mariadb_s_rows_are_those_of_the_driver(mariadb: str) -> None:
    sql = "SELECT seq, CONCAT('row ', seq), CAST(seq / 3 AS DECIMAL(9, 2)) FROM seq_1_to_2500"
    wanted = run(sql, mariadb)
    with guard(mariadb, soon(60)), connections[mariadb].cursor() as cursor, connections[mariadb].cursor() as other:
        cursor.execute(sql)
        assert [name for name, *_ in cursor.description] == [
            "seq",
            "CONCAT('row ', seq)",
            "CAST(seq / 3 AS DECIMAL(9, 2))",
        ]
        first = cursor.fetchone()
        other.execute("SELECT 1")  # the rows are here: the connection is free for the next statement
        assert other.fetchall() == ((1,),)
        assert [first, *cursor.fetchmany(99), *cursor] == wanted
        assert (cursor.fetchone(), cursor.fetchmany(5)) == (None, ())
        cursor.execute("SELECT 2")
        assert cursor.fetchall() == ((2,),)


def test_mariadb_s_own_errors_leave_the_connection(mariadb: str) -> None:
    before = run("SELECT CONNECTION_ID()", mariadb)
    with pytest.raises(DatabaseError), guard(mariadb, soon(60)):
        run("SELECT (SELECT seq FROM seq_1_to_2)", mariadb)  # more than one row, found while rows are sent
    assert run("SELECT CONNECTION_ID()", mariadb) == before
