"""The English that the rules know: words to skip, words that relate, compare, sort and refuse."""

from __future__ import annotations

from typing import Final, Literal

from gm_chat_provider_offline.words import stem

__all__ = [
    "COMPARATIVES",
    "COMPARATORS",
    "COMPUTING",
    "DATED",
    "DATE_SIGNS",
    "GLUE",
    "GREETINGS",
    "JOINING",
    "NEEDS_MOST",
    "NEGATIONS",
    "RELATING",
    "RESTING",
    "SIGNS",
    "SKIPPED",
    "SUPERLATIVES",
    "UNITS",
    "WRITING",
    "Lookup",
]


Lookup = Literal["gt", "gte", "lt", "lte"]


def _set(words: str) -> frozenset[str]:
    return frozenset(stem(word) for word in words.split())


SKIPPED: Final = _set(
    "a an the all any some every our my we us i you your they them their it its do does did is are was "
    "were be been there which what who whose whom that this these those can could would will should may "
    "please me show list give find tell get display how when where want need know see look "
    "up about currently now existing exist exists available database "
    "also just only so then to as into named called"
)
"""Words that say nothing about which rows are meant."""

RELATING: Final = _set(
    "use uses used using of by with has have had for made make makes consist consists contain "
    "contains containing include includes including belong belongs supply supplies supplied supplying "
    "offer offers offered buy buys bought deliver delivers delivered need needs needing require requires "
    "sell sells sold order orders placed place come comes built build own owns owned store stores stored "
    "hold holds via through wrote written sent paid kept ran drove taught"
)
"""Words before a value that more likely lives in a related row: "parts *of* steel"."""

RESTING: Final = _set("in at from near on within inside located based lie lies")
"""Words before a value that more likely lives in the row itself: "suppliers *in* Germany"."""

JOINING: Final = frozenset({"and", "or", "&"})

GLUE: Final = SKIPPED | RELATING | RESTING | JOINING
"""Words that are no values, unless they stand inside a proper name."""

GREETINGS: Final = _set("hello hi hey help thanks thank you good morning afternoon evening day there please me")

NEGATIONS: Final = frozenset(
    {
        "not",
        "no",
        "without",
        "except",
        "excluding",
        "never",
        "neither",
        "nor",
        "isn't",
        "aren't",
        "don't",
        "doesn't",
        "non",
    }
)

WRITING: Final = frozenset(
    {
        "create",
        "add",
        "insert",
        "update",
        "change",
        "modify",
        "set",
        "edit",
        "rename",
        "delete",
        "remove",
        "cancel",
        "increase",
    }
    | {"decrease", "raise", "lower", "move", "assign"}
)
"""First words of what the rules never do."""

COMPUTING: Final = frozenset(
    {
        "average",
        "mean",
        "median",
        "sum",
        "percentage",
        "share",
        "ratio",
        "difference",
        "compare",
        "versus",
        "vs",
        "trend",
        "why",
    }
    | {"forecast", "explain", "summarize", "summarise", "recommend", "each", "per", "most", "fewest"}
)
"""Words that ask for more than rows; named in the refusal if nothing else accounts for them."""

PRICES: Final = ("price", "cost", "amount", "total", "value")
SIZES: Final = ("size", "quantity", "area", "volume", "total", "amount", "length")
DATED: Final = "a date"
"""In place of hints: the manager's only or first date."""

SUPERLATIVES: Final[dict[str, tuple[tuple[str, ...] | str, bool]]] = {
    **dict.fromkeys(("expensive", "priciest", "costly", "costliest", "dearest"), (PRICES, True)),
    **dict.fromkeys(("cheapest", "cheap"), (PRICES, False)),
    **dict.fromkeys(("heaviest", "heavy"), (("weight", "mass"), True)),
    **dict.fromkeys(("lightest", "light"), (("weight", "mass"), False)),
    **dict.fromkeys(("largest", "biggest", "large", "big", "greatest"), (SIZES, True)),
    "smallest": (SIZES, False),
    **dict.fromkeys(("longest", "long"), (("length", "duration", "time"), True)),
    **dict.fromkeys(("shortest", "short"), (("length", "duration", "time"), False)),
    **dict.fromkeys(("highest", "tallest", "maximum", "top"), (("height",), True)),
    **dict.fromkeys(("lowest", "minimum", "bottom"), (("height",), False)),
    **dict.fromkeys(("strongest", "strong"), (("strength",), True)),
    **dict.fromkeys(("densest", "dense"), (("density",), True)),
    **dict.fromkeys(("best",), (("rating", "score", "rank"), True)),
    **dict.fromkeys(("worst",), (("rating", "score", "rank"), False)),
    **dict.fromkeys(("newest", "latest", "recent", "last", "youngest"), (DATED, True)),
    **dict.fromkeys(("oldest", "earliest", "first", "old"), (DATED, False)),
}
"""word -> (hints of field names or :data:`DATED`, descending). After "least" the direction turns round."""

NEEDS_MOST: Final = frozenset(
    {
        "expensive",
        "costly",
        "cheap",
        "heavy",
        "light",
        "large",
        "big",
        "long",
        "short",
        "strong",
        "dense",
        "recent",
        "old",
    }
)
"""Superlatives only after "most" or "least"."""

COMPARATORS: Final[dict[tuple[str, ...], Lookup]] = {
    **dict.fromkeys(
        [
            ("more", "than"),
            ("greater", "than"),
            ("larger", "than"),
            ("higher", "than"),
            ("bigger", "than"),
            ("longer", "than"),
        ],
        "gt",
    ),
    **dict.fromkeys([("over",), ("above",), ("exceeding",), (">",), ("after",), ("later", "than")], "gt"),
    **dict.fromkeys(
        [
            ("less", "than"),
            ("fewer", "than"),
            ("smaller", "than"),
            ("lower", "than"),
            ("shorter", "than"),
            ("earlier", "than"),
        ],
        "lt",
    ),
    **dict.fromkeys([("under",), ("below",), ("<",), ("before",)], "lt"),
    **dict.fromkeys([("at", "least"), (">=",), ("since",), ("minimum",)], "gte"),
    **dict.fromkeys([("at", "most"), ("<=",), ("up", "to"), ("maximum",), ("until",)], "lte"),
}

SIGNS: Final[dict[Lookup, str]] = {"gt": "over", "gte": "at least", "lt": "under", "lte": "at most"}
DATE_SIGNS: Final[dict[Lookup, str]] = {"gt": "after", "gte": "on or after", "lt": "before", "lte": "on or before"}

COMPARATIVES: Final[dict[str, tuple[tuple[str, ...] | str, Lookup]]] = {
    "heavier": (("weight", "mass"), "gt"),
    "lighter": (("weight", "mass"), "lt"),
    "dearer": (PRICES, "gt"),
    "cheaper": (PRICES, "lt"),
    "stronger": (("strength",), "gt"),
    "weaker": (("strength",), "lt"),
    "denser": (("density",), "gt"),
    "newer": (DATED, "gt"),
    "older": (DATED, "lt"),
}
"""Adjectives before "than" that name the field too."""

UNITS: Final = _set(
    "kg g t mm cm m km eur euro euros usd dollar dollars € $ % percent day days week weeks hour hours "
    "piece pieces pcs mpa g/cm3 kg/m3 year years unit units"
)
