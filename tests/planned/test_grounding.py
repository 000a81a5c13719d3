"""Answers and their sources: no number, date, quotation or code without one."""

import re
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gm_chat.planned.calculations import CalculationOperand, calculate_evidence
from gm_chat.planned.evidence import EvidenceRecord, EvidenceStore, canonical_call_identity
from gm_chat.planned.figures import numbers_of
from gm_chat.planned.grounding import Known, unfounded, without

ROWS = {
    "data": [
        {"name": "Drill 3000", "price": "12.50", "made": "2026-01-02", "code": "PX-4711", "share": 0.3333333},
        {"name": "Gear", "price": 1234567, "stock": -5, "sold": "2026-03-04T10:25:36Z", "tags": ["a", "b", "c", "d"]},
    ],
    "total_count": 2,
    "has_more": False,
}
CALL = canonical_call_identity("query", {"manager": "PartManager", "filters": {"weight__gt": 17}})
RECORD = EvidenceRecord.create("t1:query:1", "t1", "query", CALL, None, ROWS)
KNOWN = Known.of('Which parts of 2019 cost more than 10 €, such as the "Lathe" XK2?', [RECORD])


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "There are parts.",
        "The Drill 3000 costs 12.50 €, and 12.5 is what it costs.",
        "12,50 € or $1,234,567 or 1.234.567 or 1'234'567 or 1\u202f234\u2009567",
        "about 1.2 million, ~1,235,000, approximately 13, rounded to 12",
        "33% or 33.3 % or 33.33 percent or 0.33",
        "The stock is -5; it fell by 5.",
        "two parts with four tags",
        "January 2, 2026; 2 Jan 2026; 02.01.2026; 01/02/2026; 2026-01-02; 2. Januar 2026; January 2026; in 2026",
        "sold on 4 March at 10:25",
        "PX-4711, px-4711, XK2",
        "12.50 g/cm3, 10 km2 and 5\u00a0m3",
        'the "Gear", the “Drill 3000”, the `code` and the "Lathe".',
        "more than 10, of 2019, heavier than 17",
        "1. Gear\n2. Drill 3000\n3. no more",
        "May I help? It may march on.",
    ],
)
def test_what_has_a_source(answer: str) -> None:
    assert unfounded(answer, KNOWN) == []
    assert without(answer, KNOWN) == answer


@pytest.mark.parametrize(
    ("answer", "figure"),
    [
        ("It costs 12.60 €.", "12.60"),
        ("It costs 13 €.", "13"),
        ("It costs 1,234,568.", "1,234,568"),
        ("about 1.3 million", "1.3"),
        ("34%", "34"),
        ("33.33", "33.33"),
        ("seven parts", "seven"),
        ("twenty parts", "twenty"),
        ("January 3, 2026", "January 3, 2026"),
        ("April 2026", "April 2026"),
        ("since 2024", "2024"),
        ("2026-01-03", "2026-01-03"),
        ("03.01.2026", "03.01.2026"),
        ("at 10:26", "10:26"),
        ("PX-4712", "PX-4712"),
        ("12kg", "12kg"),
        ("M8x20", "M8x20"),
        ("12.60 g/cm3", "12.60"),
        ("2 M3", "M3"),
        ("2 of m3", "m3"),
        ('the "Hammer"', '"Hammer"'),
        ("the “Hammer 3000”", "“Hammer 3000”"),
        ("`weight`", "`weight`"),
        ("½ of them", "½"),
        ("4\u200b7 of them", "47"),
        ("**4**7 of them", "47"),
        ("\u0664\u0667 of them", "\u0664\u0667"),
        ("1. Gear\n7. Drill 3000", "7"),
        ("99. Gear", "99"),
        ("9" * 200, "9" * 200),
    ],
)
def test_what_has_none(answer: str, figure: str) -> None:
    assert unfounded(answer, KNOWN) == [figure]
    assert unfounded(without(answer, KNOWN), KNOWN) == []


def test_a_calculation_is_a_source() -> None:
    store = EvidenceStore()
    store.add(RECORD)
    operand = CalculationOperand("t1:query:1", ("data", 0, "price"))
    total = calculate_evidence("t1:calculation:1", "t1", "sum", [operand, operand, operand], store)
    assert unfounded("In all 37.50 €.", KNOWN) == ["37.50"]
    assert unfounded("In all 37.50 €.", Known.of("", [RECORD, total])) == []


@pytest.mark.parametrize(
    ("answer", "left"),
    [
        ("There are 2 parts. One weighs 99 kg. It is the Gear.", "There are 2 parts. It is the Gear."),
        ("Parts:\n1. Gear\n2. Hammer at 99 €\n3. Drill 3000", "Parts:\n1. Gear\n- Drill 3000"),
        ("First.\n\n\n99 there.\n\nLast.", "First.\n\nLast."),
        ("99", ""),
        ('It is "new. It costs 12.50', 'It is "new. It costs 12.50'),
    ],
)
def test_sentences_without_a_source_are_taken_out(answer: str, left: str) -> None:
    assert without(answer, KNOWN) == left


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("12", {"12"}),
        ("1.5", {"1.5"}),
        ("1,5", {"1.5"}),
        ("1,234", {"1.234", "1234"}),
        ("1.234", {"1.234", "1234"}),
        ("1234.567", {"1234.567"}),
        ("1,234,567", {"1234567"}),
        ("1.234,56", {"1234.56"}),
        ("1,234.56", {"1234.56"}),
        ("1'234.5", {"1234.5"}),
        ("0,25", {"0.25"}),
    ],
)
def test_the_readings_of_a_number(text: str, numbers: set[str]) -> None:
    assert numbers_of(text) == {Decimal(number) for number in numbers}


NUMBERS = st.integers(0, 10**9)
PIECES = st.one_of(
    NUMBERS.map(str),
    st.floats(0, 10**6, allow_nan=False).map("{:.2f}".format),
    st.sampled_from(
        [
            "parts",
            ".",
            "\n",
            " about ",
            "%",
            "**",
            "1. ",
            "2) ",
            "- ",
            '"',
            "\u200b",
            "kg",
            "-",
            "/",
            ":",
            " million",
            ",",
        ]
    ),
    st.text(max_size=3),
)


@given(st.lists(NUMBERS, max_size=5), st.lists(PIECES, max_size=30).map("".join))
def test_what_is_left_of_any_answer_states_no_number_that_is_not_known(numbers: list[int], answer: str) -> None:
    """The text is judged by another reading than the code's: whole runs of plain digits, as they are."""
    record = EvidenceRecord.create("e", "t", "query", "call", None, {"data": numbers})
    known = Known.of("", [record])
    left = without(answer, known)
    assert unfounded(left, known) == []
    allowed = {*map(str, numbers), str(len(numbers))}
    for run in re.finditer(
        r"(?<![\w.,'/:%\u2019\u00a0\u202f\u2009~≈-])[0-9]+(?![\w.,'/:\u2019\u00a0\u202f\u2009-]|\s?%|\s?mi|\)|\s*per)",
        left,
    ):
        before = left[: run.start()]
        if not before.rstrip().endswith("about") and not re.search(r"(^|\n)[ \t*>#-]*$", before):
            assert str(int(run.group())) in allowed, (left, numbers)


@given(st.text())
def test_any_text_is_judged(answer: str) -> None:
    left = without(answer, KNOWN)
    assert unfounded(left, KNOWN) == []
