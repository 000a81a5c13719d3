"""A library's data behind the real tools' contract, in memory: what the rules are tested against.

It shares no name with the demo: the rules may know no application.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from gm_chat_provider_offline.dialogue import converse
from gm_chat_provider_offline.words import stem

if TYPE_CHECKING:
    from collections.abc import Callable

Row = dict[str, Any]


def field(name: str, type: str = "string", description: str = "", **more: Any) -> tuple[str, Row]:
    return name, {"type": type, **({"description": description} if description else {}), **more}


def relation(name: str, target: str, many: bool = False) -> Row:
    return {"name": name, "target": target, "many": many, "description": ""}


def choices(*values: str) -> list[Row]:
    return [{"value": value, "label": value.replace("_", " ").capitalize()} for value in values]


def complete(fields: list[tuple[str, Row]], **schema: Any) -> Row:
    """A result of get_manager_schema."""
    filters = [name for name, details in fields if not details.pop("computed", False)]
    return {**schema, "fields": [name for name, _ in fields], "filters": filters, "field_details": dict(fields)}


SCHEMAS: dict[str, Row] = {
    schema["manager"]: complete(**schema)
    for schema in [
        {
            "manager": "BookManager",
            "description": "Titles that the library owns.",
            "aliases": ["volume", "publication"],
            "fields": [
                field("id", "integer"),
                field("isbn"),
                field("title"),
                field("genre", choices=choices("novel", "science_fiction", "travel", "colour_plates")),
                field("pages", "integer"),
                field("price", "decimal", "price in EUR"),
                field("published_on", "date"),
                field("rare", "boolean"),
            ],
            "relations": [
                relation("author", "AuthorManager"),
                relation("copies", "CopyManager", many=True),
            ],
        },
        {
            "manager": "AuthorManager",
            "description": "People who wrote books, with country of birth.",
            "fields": [field("id", "integer"), field("name"), field("country"), field("born", "integer")],
            "relations": [relation("books", "BookManager", many=True)],
        },
        {
            "manager": "CopyManager",
            "description": "Copies on the shelves of a branch.",
            "fields": [
                field("id", "integer"),
                field("quantity", "integer"),
                field("condition", choices=choices("new", "used", "torn")),
            ],
            "relations": [relation("book", "BookManager"), relation("branch", "BranchManager")],
        },
        {
            "manager": "BranchManager",
            "description": "Houses of the library.",
            "fields": [field("id", "integer"), field("name"), field("city")],
            "relations": [relation("copies", "CopyManager", many=True)],
        },
        {
            "manager": "LoanManager",
            "description": "Books that members took home, with status and date.",
            "aliases": ["checkout"],
            "fields": [
                field("id", "integer"),
                field("number"),
                field("status", choices=choices("open", "returned", "on_hold")),
                field("due_on", "date"),
                field("fee", "decimal"),
            ],
            "relations": [relation("member", "MemberManager"), relation("book", "BookManager")],
        },
        {
            "manager": "MemberManager",
            "description": "Readers with a card.",
            "fields": [field("id", "integer"), field("name"), field("city")],
            "relations": [relation("loans", "LoanManager", many=True)],
        },
    ]
}

AUTHORS = [
    {"id": 1, "name": "Ada Moreno", "country": "Spain", "born": 1951},
    {"id": 2, "name": "Boris Petrov", "country": "Bulgaria", "born": 1938},
    {"id": 3, "name": "Chloe Spainard", "country": "France", "born": 1980},
]
BOOKS = [
    {"id": 1, "isbn": "978-0-11", "title": "The Aluminium Sea", "genre": "novel", "pages": 310, "price": "12.50"},
    {"id": 2, "isbn": "978-0-12", "title": "Grey Harbour", "genre": "science_fiction", "pages": 120, "price": "9.00"},
    {"id": 3, "isbn": "978-0-13", "title": "Maps of Spain", "genre": "travel", "pages": 64, "price": "31.00"},
    {"id": 4, "isbn": "978-0-14", "title": "Grey Harbour Returns", "genre": "novel", "pages": 512, "price": "18.25"},
]
for _number, (_book, _author) in enumerate(zip(BOOKS, (1, 2, 1, 3), strict=True)):
    _book |= {"author": AUTHORS[_author - 1], "rare": _number == 2, "published_on": f"20{10 + _number}-05-01"}
BRANCHES = [{"id": 1, "name": "Old Town", "city": "Sofia"}, {"id": 2, "name": "Riverside", "city": "Varna"}]
COPIES = [
    {"id": 1, "quantity": 3, "condition": "new", "book": BOOKS[0], "branch": BRANCHES[0]},
    {"id": 2, "quantity": 1, "condition": "torn", "book": BOOKS[1], "branch": BRANCHES[1]},
    {"id": 3, "quantity": 2, "condition": "used", "book": BOOKS[3], "branch": BRANCHES[0]},
]
MEMBERS = [{"id": 1, "name": "Acme Reading Club", "city": "Sofia"}, {"id": 2, "name": "Dora Ivanova", "city": "Varna"}]
LOANS = [
    {"id": number, "number": f"L-{number:03d}", "status": status, "due_on": f"2026-0{number}-15", "fee": fee}
    | {"member": MEMBERS[member], "book": BOOKS[book]}
    for number, status, fee, member, book in [
        (1, "open", "0.50", 0, 0),
        (2, "open", "1.00", 0, 1),
        (3, "returned", "0.00", 0, 3),
        (4, "open", "2.00", 1, 1),
        (5, "on_hold", "0.00", 1, 2),
    ]
]
ROWS: dict[str, list[Row]] = {
    "AuthorManager": AUTHORS,
    "BookManager": BOOKS,
    "BranchManager": BRANCHES,
    "CopyManager": COPIES,
    "MemberManager": MEMBERS,
    "LoanManager": LOANS,
}
BACK = {"copies": ("CopyManager", {"BookManager": "book", "BranchManager": "branch"})}
BACK |= {"books": ("BookManager", {"AuthorManager": "author"}), "loans": ("LoanManager", {"MemberManager": "member"})}


class Library:
    """The four read tools. ``hidden`` managers do not exist; every call is recorded."""

    def __init__(self, *hidden: str) -> None:
        self.schemas = {
            name: {**schema, "relations": [item for item in schema["relations"] if item["target"] not in hidden]}
            for name, schema in SCHEMAS.items()
            if name not in hidden
        }
        self.calls: list[tuple[str, Row]] = []
        self.rounds = 0

    def call(self, name: str, args: Row) -> Any:
        self.calls.append((name, args))
        return getattr(self, name)(**args)

    def queries(self) -> list[Row]:
        return [args for name, args in self.calls if name == "query"]

    def search_managers(self, query: str) -> list[Row]:
        """Rank by shared words; like the real one it knows nothing of values."""
        words = {stem(word.strip("?,.")) for word in query.split()}
        ranked = []
        for name, schema in self.schemas.items():
            own = {stem(name.removesuffix("Manager")), *map(stem, schema.get("aliases", []))}
            members = {stem(word) for item in schema["fields"] for word in item.split("_")}
            described = {stem(word.strip(",.")) for word in schema["description"].split()}
            score = 8 * len(words & own) + 3 * len(words & described) + len(words & members)
            if score:
                ranked.append((-score, name))
        return [self._summary(name) for _, name in sorted(ranked)]

    def _summary(self, name: str) -> Row:
        schema = self.schemas[name]
        return {
            "manager": name,
            "description": schema["description"],
            "fields": schema["fields"],
            "relations": [{"name": item["name"], "target": item["target"]} for item in schema["relations"]],
            "filters": [],
        }

    def get_manager_schema(self, manager: str) -> Row | None:
        return self.schemas.get(manager)

    def find_path(self, from_manager: str, to_manager: str) -> list[str] | None:
        ways: list[tuple[str, list[str]]] = [(from_manager, [])]
        seen = {from_manager}
        for name, way in ways:
            if name == to_manager:
                return way
            for item in self.schemas[name]["relations"]:
                if item["target"] not in seen:
                    seen.add(item["target"])
                    ways.append((item["target"], [*way, item["name"]]))
        return None

    def query(self, manager: str, fields: list[str], filters: Row | None = None, **more: Any) -> Row:
        rows = [row for row in ROWS[manager] if self._holds(manager, row, filters or {})]
        for term in reversed(more.get("order_by", [])):
            rows = sorted(rows, key=lambda row: _comparable(row[term.lstrip("-")]), reverse=term.startswith("-"))
        limit = more.get("limit", 200)
        data = [self._shape(manager, row, fields) for row in rows[:limit]]
        return {"data": data, "total_count": len(rows), "has_more": len(rows) > limit}

    def _shape(self, manager: str, row: Row, fields: list[str]) -> Row:
        shaped: Row = {}
        names = self.schemas[manager]["fields"]
        for path in [name for asked in fields for name in (names if asked == "*" else [asked])]:
            head, _, rest = path.partition("__")
            if not rest:
                assert head in names, f"{manager} has no field {head!r}"
                shaped[head] = row[head]
                continue
            target, related = self._follow(manager, row, head)
            inner = [self._shape(target, item, [rest]) for item in related]
            shaped[head] = _merge(shaped.get(head), inner if head in BACK else inner[0])
        return shaped

    def _follow(self, manager: str, row: Row, name: str) -> tuple[str, list[Row]]:
        target = next(item["target"] for item in self.schemas[manager]["relations"] if item["name"] == name)
        if name not in BACK:
            return target, [row[name]]
        other, through = BACK[name]
        return target, [item for item in ROWS[other] if item[through[manager]] is row]

    def _holds(self, manager: str, row: Row, filters: Row) -> bool:
        return all(self._condition(manager, row, key, value) for key, value in filters.items())

    def _condition(self, manager: str, row: Row, key: str, value: Any) -> bool:
        if key in ("or", "and"):
            return {"or": any, "and": all}[key](self._holds(manager, row, item) for item in value)
        head, _, rest = key.partition("__")
        if any(item["name"] == head for item in self.schemas[manager]["relations"]):
            target, related = self._follow(manager, row, head)
            if rest == "isnull":
                return bool(related) is not value
            return any(self._condition(target, item, rest, value) for item in related)
        assert head in self.schemas[manager]["filters"], f"{manager} has no filter {head!r}"
        return _compare(row[head], rest or "exact", value)


def _compare(have: Any, lookup: str, wanted: Any) -> bool:
    if lookup == "icontains":
        return str(wanted).casefold() in str(have).casefold()
    if lookup == "exact":
        return bool(have == wanted)
    left, right = _comparable(have), _comparable(wanted)
    return {"gt": left > right, "gte": left >= right, "lt": left < right, "lte": left <= right}[lookup]


def _comparable(value: Any) -> Any:
    try:
        return float(value)
    except ValueError:
        return value


def _merge(old: Any, new: Any) -> Any:
    if isinstance(old, dict):
        return {key: _merge(old.get(key), new.get(key, old.get(key))) for key in {**old, **new}}
    return [_merge(*pair) for pair in zip(old, new, strict=True)] if isinstance(old, list) else new


def _ask(question: str, library: Library) -> str:
    """Run the dialogue against a library."""
    dialogue = converse(question)
    try:
        calls = next(dialogue)
        while True:
            library.rounds += 1
            calls = dialogue.send([library.call(name, args) for name, args in calls])
    except StopIteration as end:
        return str(end.value)


@pytest.fixture(scope="session")
def make_library() -> type[Library]:
    """A library without some managers: ``make_library("AuthorManager")``."""
    return Library


@pytest.fixture
def library() -> Library:
    return Library()


@pytest.fixture(scope="session")
def ask() -> Callable[[str, Library], str]:
    return _ask
