from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from testproject.defog.reference import NOW, database_of
from testproject.shop.models import Material

from gm_chat.evals.dataset import load_dataset, parse_dataset
from gm_chat.evals.from_sql import LeftOut, Taken, main, sift, to_yaml
from gm_chat.evals.questions import CsvError, Question, read_questions, statements
from gm_chat.evals.reading import SqlError, read_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SHARED = Path(os.environ.get("GM_CHAT_SHARED") or Path(__file__).resolve().parents[2].parent / "shared")
COUNT = "SELECT COUNT(*) FROM shop_material"


@pytest.fixture
def file(tmp_path: Path) -> Callable[[str], Path]:
    def write(text: str, name: str = "own.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(text.encode())
        return path

    return write


@pytest.fixture
def materials(db: None) -> None:
    Material.objects.create(name="Steel", density=7.8)
    Material.objects.create(name="Cork", density=0.2)


# --- reading the file ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "question,sql\nHow many?,SELECT 1\n",
        "sql;question\nSELECT 1;How many?\n",
        "\ufeffPrompt\tGold SQL\nHow many?\tSELECT 1\n",
        'question,query,db_name\n\n"How many?","SELECT 1;",\n,,\n',
    ],
)
def test_columns_delimiters_and_marks_are_found_by_themselves(file: Callable[[str], Path], text: str) -> None:
    (question,) = read_questions(file(text))
    assert (question.text, question.statements) == ("How many?", ("SELECT 1",))


def test_all_that_a_row_says_is_kept(file: Callable[[str], Path]) -> None:
    path = file('db_name,query_category,question,query,instructions\nshop,sums,"Two\nlines?",SELECT 1;SELECT 2,Hint.\n')
    assert read_questions(path) == [
        Question(
            line=3,
            text="Two\nlines?",
            statements=("SELECT 1", "SELECT 2"),
            database="shop",
            category="sums",
            instructions="Hint.",
        )
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"has no column 'question' or .*names nothing"),
        ("question,answer\na,b\n", r"has no column 'sql' or .*names question, answer"),
        ("question,sql\n", "has no row with a question"),
        ("question,sql\n,SELECT 1\n", "has no row with a question"),
    ],
)
def test_a_file_without_questions_is_refused_with_its_name(
    file: Callable[[str], Path], text: str, message: str
) -> None:
    with pytest.raises(CsvError, match=rf"own\.csv: {message}"):
        read_questions(file(text))


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "own.csv").write_bytes(b"question,sql\n\xff\xfe,1\n")
    with pytest.raises(CsvError, match=r"own\.csv: is no CSV in UTF-8"):
        read_questions(tmp_path / "own.csv")


def test_semicolons_in_texts_and_comments_divide_nothing() -> None:
    sql = "SELECT ';' -- one; two\n, \"a;b\" /* ; */; SELECT 'it''s;';;"
    assert statements(sql) == ("SELECT ';' -- one; two\n, \"a;b\" /* ; */", "SELECT 'it''s;'")
    assert statements("SELECT 'unclosed; text") == ("SELECT 'unclosed", "text")


@given(st.text(st.sampled_from("ab;'\"-/* \n")))
def test_dividing_loses_nothing_but_semicolons(sql: str) -> None:
    def rest(text: str) -> str:
        return "".join(text.replace(";", "").split())

    assert rest("".join(statements(sql))) == rest(sql)


# --- judging the questions -------------------------------------------------------------------------------------------


def judged(rows: dict[str, Sequence[tuple[Any, ...]] | str], *sql: str) -> Taken | LeftOut:
    def read(statement: str) -> list[tuple[Any, ...]]:
        found = rows[statement]
        if isinstance(found, str):
            raise SqlError(found)
        return list(found)

    return next(iter(sift([Question(line=2, text="?", statements=sql)], read, max_rows=2)))


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ("no such table: x", "its SQL no such table: x"),
        ([], "its SQL gives no rows"),
        ([(None, None)], "its SQL gives nothing but NULL"),
        ([(1,), (2,), (3,)], "its SQL gives 3 rows, more than 2"),
    ],
)
def test_what_could_never_be_answered_is_left_out(rows: Any, reason: str) -> None:
    left = judged({"a": rows}, "a")
    assert isinstance(left, LeftOut)
    assert left.reason == reason


def test_the_first_statement_that_gives_rows_is_the_reference() -> None:
    taken = judged({"a": "fails", "b": [(1, None)], "c": [(2,)]}, "a", "b", "c")
    assert isinstance(taken, Taken)
    assert taken.sql == "b"
    left = judged({"a": "fails", "b": []}, "a", "b")
    assert isinstance(left, LeftOut)
    assert left.reason == "its SQL fails; its SQL gives no rows"
    left = judged({})
    assert isinstance(left, LeftOut)
    assert left.reason == "it has no SQL"


def test_names_are_unique_and_come_from_the_question() -> None:
    texts = ["How many parts?", "how many PARTS", "How many parts 2?", "Wie viele Größen?", "何?"]
    taken = [Taken(Question(line=n, text=text, statements=("S",)), "S") for n, text in enumerate(texts, 2)]
    dataset = parse_dataset(to_yaml(taken, source="own.csv").encode(), name="own", source="own.yaml")
    assert [case.name for case in dataset.cases] == [
        *("how-many-parts", "how-many-parts.2", "how-many-parts-2", "wie-viele-gr-en", "line-6")
    ]


# --- the database ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sql", [COUNT, "/* how many */\nWITH n AS (SELECT 2 AS i) SELECT i FROM n", "VALUES (2)"])
def test_reading_gives_rows(materials: None, sql: str) -> None:
    assert read_rows(sql, "default") == [(2,)]


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("DELETE FROM shop_material", "is no SELECT"),
        ("SELECT * FROM nowhere", "nowhere"),
        ("WITH d AS (SELECT 1) DELETE FROM shop_material", "(?i)read.?only|syntax"),
    ],
)
def test_reading_writes_nothing(transactional_db: None, sql: str, message: str) -> None:
    Material.objects.create(name="Steel", density=7.8)
    with pytest.raises(SqlError, match=message):
        read_rows(sql, "default")
    assert Material.objects.count() == 1


def test_a_statement_without_end_is_stopped(db: None) -> None:
    numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 900)"
    endless = " ".join((numbers, "SELECT SUM(a.i * b.i * c.i * d.i) FROM n a, n b, n c, n d"))
    with pytest.raises(SqlError, match=r"takes longer than 0\.05 s"):
        read_rows(endless, "default", seconds=0.05)


# --- the command -----------------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def _settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "testproject.settings")


def test_the_command_writes_a_dataset_and_lists_what_it_left_out(
    materials: None, file: Callable[[str], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [
        ("db", "category", "question", "sql", "hint"),
        ("shop", "counts", "How many materials?", COUNT, "Cork counts."),
        ("shop", "", "What floats?", "SELECT name FROM shop_material WHERE density < 0.1", ""),
        ("shop", "", "Who are we?", "SELECT name FROM people", ""),
        ("other", "", "How many elsewhere?", COUNT, ""),
    ]
    source = file("\n".join(map(",".join, rows)))
    out = tmp_path / "own.yaml"
    assert main([str(source), "--out", str(out), "--only", "shop"]) == 0
    (case,) = load_dataset(out).cases
    assert case.name == "how-many-materials"
    assert case.tags == ("shop", "counts")
    assert case.conversation[0].user == "How many materials?\n\nCork counts."
    assert case.hard.result_set is not None
    assert case.hard.result_set.sql == COUNT
    output = capsys.readouterr()
    assert output.out == f"1 of 3 questions written to {out}\n"
    first, second = output.err.splitlines()
    assert first == "line 3: left out, its SQL gives no rows: What floats?"
    assert second.startswith("line 4: left out, its SQL ")
    assert second.endswith(": Who are we?")


def test_nothing_is_overwritten_unasked_nor_left_half_written(
    materials: None, file: Callable[[str], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, out = file(f"question,sql\nHow many?,{COUNT}\n"), tmp_path / "own.yaml"
    out.write_text("mine")
    with pytest.raises(SystemExit) as stopped:
        main([str(source), "--out", str(out)])
    assert stopped.value.code == 2
    assert "--force overwrites it" in capsys.readouterr().err
    assert out.read_text() == "mine"
    empty = file("question,sql\nHow many?,SELECT 1 WHERE 1 = 0\n", "empty.csv")
    assert main([str(empty), "--out", str(out), "--force"]) == 1
    assert out.read_text() == "mine"
    assert main([str(source), "--out", str(out), "--force"]) == 0
    assert len(load_dataset(out).cases) == 1
    assert {path.name for path in tmp_path.iterdir()} == {"own.csv", "empty.csv", "own.yaml"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--database", "moon"], "there is no 'moon'; known: default"),
        (["--only", "moon"], "no question is of the database 'moon'"),
        (["--out", "/no/such/folder/x.yaml"], "there is no folder"),
    ],
)
def test_wrong_arguments_are_explained(
    file: Callable[[str], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], message: str
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main([str(file("question,sql\nHow many?,SELECT 1\n")), "--out", str(tmp_path / "own.yaml"), *options])
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err


def test_help_needs_no_project_and_a_run_does(file: Callable[[str], Path], tmp_path: Path) -> None:
    environment = {key: value for key, value in os.environ.items() if key != "DJANGO_SETTINGS_MODULE"}

    def run(*args: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "gm_chat.evals.from_sql", *args]
        return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)

    assert run("--help").returncode == 0
    refused = run(str(file("question,sql\nHow many?,SELECT 1\n")), "--out", str(tmp_path / "own.yaml"))
    assert refused.returncode == 2
    assert "--settings MODULE" in refused.stderr


# --- a public benchmark ----------------------------------------------------------------------------------------------


def test_the_benchmarks_questions_all_become_cases() -> None:
    folder = SHARED / "data" / "defog"
    if not (folder / "questions.csv").exists():
        if "shared" in os.environ.get("GM_CHAT_REQUIRE", "").split(","):
            pytest.fail(f"GM_CHAT_REQUIRE names shared, but there is no {folder}")
        pytest.skip(f"there is no {folder}; set GM_CHAT_SHARED")
    questions = read_questions(folder / "questions.csv")
    assert len(questions) == 62
    sifted: list[Taken | LeftOut] = []
    for name in ("car_dealership", "ewallet"):
        database = database_of(name, folder)

        def read(sql: str, database: sqlite3.Connection = database) -> list[tuple[Any, ...]]:
            try:
                return list(database.execute(sql.replace("'now'", f"'{NOW.isoformat(sep=' ')}'")))
            except sqlite3.Error as error:
                raise SqlError(str(error)) from error

        sifted += sift([item for item in questions if item.database == name], read, max_rows=200)
    assert [item.reason for item in sifted if isinstance(item, LeftOut)] == []
    text = to_yaml([item for item in sifted if isinstance(item, Taken)], source="questions.csv")
    dataset = parse_dataset(text.encode(), name="defog", source="defog.yaml")
    assert len(dataset.cases) == 62
    messages = [case.conversation[0].user for case in dataset.cases]
    assert any("\n\nASP (average selling price) =" in message for message in messages), "what one has to know is told"
