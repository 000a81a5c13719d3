"""Questions to answers: what is asked of the tools, and what is said. The data is a library's."""

from __future__ import annotations

from typing import Any

import pytest
from gm_chat_provider_offline.answers import FOOTER
from hypothesis import given, settings
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("question", "filters", "opening"),
    [
        ("How many books do we have?", None, "There are 4 books."),
        ("total number of books", None, "There are 4 books."),
        ("count books", None, "There are 4 books."),
        (
            "how many open loans has Acme?",
            {"status": "open", "member__name__icontains": "Acme"},
            "There are 2 loans where status is 'open', and member name contains 'Acme'.",
        ),
        (
            "number of open loans of Dora Ivanova",
            {"status": "open", "member__name": "Dora Ivanova"},
            "There is 1 loan where status is 'open', and member name is 'Dora Ivanova'.",
        ),
        ("list authors in Spain", {"country": "Spain"}, "1 author where country is 'Spain':"),
        ("authors from spain", {"country": "Spain"}, "1 author where country is 'Spain':"),
        (
            "Which books are by Ada Moreno?",
            {"author__name": "Ada Moreno"},
            "2 books where author name is 'Ada Moreno':",
        ),
        ("List rare books", {"rare": True}, "1 book where rare is true:"),
        ("list science fiction books", {"genre": "science_fiction"}, "1 book where genre is 'science fiction':"),
        ("books with color plates", {"genre": "colour_plates"}, "I found no books where genre is 'colour plates'."),
        ("list novels", {"genre": "novel"}, "2 books where genre is 'novel':"),
        ("which volumes are rare", {"rare": True}, "1 book where rare is true:"),
        ("which titles are rare", {"rare": True}, "1 book where rare is true:"),
        (
            "list rare novels",
            {"rare": True, "genre": "novel"},
            "I found no books where rare is true, and genre is 'novel'.",
        ),
        (
            "novels with Ada Moreno",
            {"genre": "novel", "author__name": "Ada Moreno"},
            "1 book where genre is 'novel', and author name is 'Ada Moreno':",
        ),
        ("which readers have book 978-0-12", {"loans__book__isbn": "978-0-12"}, "2 members where loans book isbn is"),
        (
            "books with aluminum",
            {"or": [{"title__icontains": "aluminum"}, {"title__icontains": "aluminium"}]},
            "1 book where title contains 'aluminum' or 'aluminium':",
        ),
        (
            "show me the book Maps of the Spain",
            {
                "and": [
                    {"or": [{"title__icontains": "Maps"}, {"isbn__icontains": "Maps"}]},
                    {"or": [{"title__icontains": "Spain"}, {"isbn__icontains": "Spain"}]},
                ]
            },
            "1 book where its text contains 'Maps' and 'Spain':",
        ),
        ("Show me book Maps of Spain", {"title": "Maps of Spain"}, "1 book where title is 'Maps of Spain':"),
        ("books named 'Grey Harbour'", {"title": "Grey Harbour"}, "1 book where title is 'Grey Harbour':"),
        (
            "books about harbour returns grey",
            {
                "and": [
                    {"or": [{f"{name}__icontains": word} for name in ("title", "isbn") for word in words]}
                    for words in (("harbour", "harbor"), ("returns",), ("grey", "gray"))
                ]
            },
            "1 book where its text contains 'harbour' and 'returns' and 'grey':",
        ),
        (
            "Which branches have book 978-0-11?",
            {"copies__book__isbn": "978-0-11"},
            "1 branch where copies book isbn is '978-0-11':",
        ),
        (
            "branches with 978-0-11",
            {"copies__book__isbn": "978-0-11"},
            "1 branch where copies book isbn is '978-0-11':",
        ),
        (
            "which books does the Riverside branch have?",
            {"copies__branch__name": "Riverside"},
            "1 book where copies branch name is 'Riverside':",
        ),
        (
            "which members borrowed Grey Harbour",
            {"loans__book__title": "Grey Harbour"},
            "2 members where loans book title is 'Grey Harbour':",
        ),
        ("Which authors have books?", {"books__isnull": False}, "3 authors where there is a book:"),
        (
            "books of the author Ada Moreno in the Old Town branch",
            {"author__name": "Ada Moreno", "copies__branch__name": "Old Town"},
            "1 book where author name is 'Ada Moreno', and copies branch name is 'Old Town':",
        ),
        (
            "show open Acme loans",
            {"status": "open", "member__name__icontains": "Acme"},
            "2 loans where status is 'open'",
        ),
        (
            "which loans are on hold or returned?",
            {"or": [{"status": "on_hold"}, {"status": "returned"}]},
            "2 loans where status is 'on hold' or status is 'returned':",
        ),
        (
            "books by Moreno and Petrov",
            {"or": [{"author__name__icontains": "Moreno"}, {"author__name__icontains": "Petrov"}]},
            "3 books where author name contains 'Moreno' or author name contains 'Petrov':",
        ),
        ("books cheaper than 10", {"price__lt": 10}, "1 book where price is under 10:"),
        ("books over 300 pages", {"pages__gt": 300}, "2 books where pages is over 300:"),
        ("books with at least 310 pages", {"pages__gte": 310}, "2 books where pages is at least 310:"),
        ("books with a price below 12.5 euros", {"price__lt": 12.5}, "1 book where price is under 12.5:"),
        (
            "Which books published after 2012?",
            {"published_on__gt": "2012-12-31"},
            "1 book where published on is after 2012-12-31:",
        ),
        ("loans due before 2026-03-01", {"due_on__lt": "2026-03-01"}, "2 loans where due on is before 2026-03-01:"),
        ("loans since 2026-04-01", {"due_on__gte": "2026-04-01"}, "2 loans where due on is on or after 2026-04-01:"),
        ("autors from Bulgaria", {"country": "Bulgaria"}, "1 author where country is 'Bulgaria':"),
        ("copies in Sofia", {"branch__city": "Sofia"}, "2 copies where branch city is 'Sofia':"),
    ],
)
def test_filters(question: str, filters: Any, opening: str, ask: Any, library: Any) -> None:
    answer = ask(question, library)
    assert library.queries()[-1].get("filters") == filters
    assert answer.startswith(opening)
    assert answer.endswith(FOOTER)


@pytest.mark.parametrize(
    ("question", "order", "limit", "opening"),
    [
        ("show the two most expensive books", ["-price"], 2, "2 of 4 books, the highest price first:"),
        ("cheapest book", ["price"], 1, "1 of 4 books, the lowest price first:"),
        ("least expensive book", ["price"], 1, "1 of 4 books, the lowest price first:"),
        ("newest book", ["-published_on"], 1, "1 of 4 books, the latest published on first:"),
        ("3 oldest books", ["published_on"], 3, "3 of 4 books, the earliest published on first:"),
        ("first 2 books", ["published_on"], 2, "2 of 4 books, the earliest published on first:"),
        ("top 2 books by pages", ["-pages"], 2, "2 of 4 books, the highest pages first:"),
        ("books sorted by price descending", ["-price"], 20, "4 of 4 books, the highest price first:"),
        ("books sorted by title", ["title"], 20, "4 of 4 books, in the order of title:"),
        ("books by price", ["price"], 20, "4 of 4 books, the lowest price first:"),
        ("list the 3 books with the lowest price", ["price"], 3, "3 of 4 books, the lowest price first:"),
        ("show 3 books", None, 3, "3 of 4 books:"),
        ("books", None, 20, "4 books:"),
    ],
)
def test_order_and_number(question: str, order: Any, limit: int, opening: str, ask: Any, library: Any) -> None:
    assert ask(question, library).startswith(opening)
    query = library.queries()[-1]
    assert (query.get("order_by"), query["limit"]) == (order, limit)


@pytest.mark.parametrize(
    ("question", "line"),
    [
        ('What is the price of "Grey Harbour"?', "- Grey Harbour · 978-0-12: price 9.00"),
        ("what is the price of gray harbor?", "- Grey Harbour · 978-0-12: price 9.00"),
        ("what is the status of loan L-003", "- L-003 · Acme Reading Club · Grey Harbour Returns: status returned"),
        ("What is the price and pages of Maps of Spain?", "- Maps of Spain · 978-0-13: price 31.00; pages 64"),
        ("what is the country of Ada Moreno", "- Ada Moreno · Spain"),
        (
            "what is the price of the newest book",
            "- Grey Harbour Returns · 978-0-14: price 18.25; published on 2013-05-01",
        ),
        ("copies in Sofia", "- The Aluminium Sea · Old Town: quantity 3; condition new"),
        ("show loan L-003", "- status: returned"),
        ("show book Maps of Spain", "- price: 31.00 (price in EUR)"),
    ],
)
def test_lines(question: str, line: str, ask: Any, library: Any) -> None:
    assert line in ask(question, library).splitlines()


@pytest.mark.parametrize(
    ("question", "reason"),
    [
        ("supliers of books", "I find no book or anything related to it that 'supliers' could mean."),
        ("how many loans per member", "'per' asks for more than looking rows up, which these rules cannot do."),
        ("average price of books", "'average' asks for more than looking rows up, which these rules cannot do."),
        ("how many books are not rare?", "I cannot answer that: questions with 'not' are beyond these rules."),
        ("books without copies", "I cannot answer that: questions with 'without' are beyond these rules."),
        ("delete book 1", "I only read data; I cannot delete anything."),
        ("how many unicorns do we have?", "I know nothing called 'unicorns' among the data that you may see."),
        ("what is there?", "I do not see which kind of thing the question is about."),
        ("hello", "Hello. I look things up in this application's data."),
        ("", "Hello. I look things up in this application's data."),
        (
            "books over 5",
            "I cannot answer that: I cannot tell which field of book 'over 5' is about; known: pages, price",
        ),
        ("the longest book", "I cannot answer that: I cannot tell which field of book 'longest' is about"),
        ("books with pages after 2012-01-01", "I cannot answer that: 'after 2012-01-01' does not fit pages"),
        ("books published after 9", "I cannot answer that: 'after 9' does not fit published on, which is a date."),
        ("books by Moreno or rare", "I can combine two values with 'or' only if they belong to one field."),
        ("books of author Zaphod", "I find no author or anything related to it that 'Zaphod' could mean."),
    ],
)
def test_what_is_not_understood_is_said_with_examples(question: str, reason: str, ask: Any, library: Any) -> None:
    answer = ask(question, library)
    assert answer.startswith(reason)
    assert "Questions that I can answer:\n- How many " in answer
    assert answer.endswith(FOOTER)
    assert all("filters" in query and query["limit"] == 20 for query in library.queries())  # probes, no answer


def test_its_examples_are_understood(ask: Any, library: Any, make_library: Any) -> None:
    examples = [line[2:] for line in ask("delete books and loans", library).splitlines() if line.startswith("- ")]
    assert len(examples) >= 5
    for example in examples:
        assert "Questions that I can answer" not in ask(example, make_library()), example


def test_hidden_managers_do_not_exist(ask: Any, make_library: Any) -> None:
    library = make_library("AuthorManager")
    answer = ask("how many authors are there?", library)
    assert answer.startswith("I know nothing called 'authors' among the data that you may see.")
    assert library.queries() == []
    answer = ask("books by Ada Moreno", library)
    assert answer.startswith("I find no book or anything related to it that 'Ada Moreno' could mean.")


def test_who_sees_nothing_is_told_so(ask: Any, make_library: Any) -> None:
    library = make_library(*make_library().schemas)
    assert ask("how many books are there?", library).startswith("I see no data at all. Perhaps you are not logged in")
    assert {name for name, _ in library.calls} == {"search_managers"}


def test_the_rest_is_counted(ask: Any, library: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gm_chat_provider_offline.dialogue.SHOWN_ROWS", 3)
    lines = ask("list books", library).splitlines()
    assert lines[0] == "4 books:"
    assert lines[4] == "... and 1 more."


@pytest.mark.parametrize("tool", ["search_managers", "get_manager_schema", "find_path", "query"])
@pytest.mark.parametrize("result", [{"error": {"code": "timeout", "message": "too slow"}}, None, [], "?", 7])
def test_tools_that_fail_end_in_words(tool: str, result: Any, ask: Any, library: Any) -> None:
    setattr(library, tool, lambda **_: result)
    for question in ("which branches have book 978-0-11?", "how many books", "price of Grey Harbour", "rare books"):
        assert ask(question, library).endswith(FOOTER)


def test_a_refused_query_is_no_empty_answer(ask: Any, library: Any) -> None:
    library.query = lambda **_: {"error": {"code": "timeout", "message": "the query took too long"}}
    assert ask("how many books", library).startswith("The data could not be read: the query took too long")


def test_the_tool_s_note_is_passed_on(ask: Any, library: Any) -> None:
    query = library.query
    library.query = lambda **args: {**query(**args), "note": "Some rows may be hidden."}
    assert "Some rows may be hidden." in ask("how many books", library).splitlines()


TYPICAL = """
which how many show the list books loans authors branches open rare of by in with and or not Acme Grey Harbour most
expensive price over under 10 five 2026-01-01 first top newest than cheaper at least what is Ada 'x' " ,
"""
WORDS = st.sampled_from(TYPICAL.split())


@settings(max_examples=300, deadline=None)
@given(words=st.lists(st.one_of(WORDS, st.text(max_size=8)), max_size=12))
def test_any_question_ends_within_a_few_rounds(words: list[str], ask: Any, make_library: Any) -> None:
    library = make_library()
    assert ask(" ".join(words), library).endswith(FOOTER)
    assert library.rounds <= 40
