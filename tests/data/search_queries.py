"""Makes ``search_queries.jsonl``: 800 queries over the ``large`` fixture, each with the manager that it means.

500 are made from a manager's own name and description, 300 from the words of its catalog.

Run it to write the file anew; a test compares. A query is made from its manager alone, by chance and without a look
at any search result: what cannot be found stays in.
"""

from __future__ import annotations

import json
import random
import string
from pathlib import Path
from typing import TYPE_CHECKING

from gm_chat.managers.names import split_words
from gm_chat.testing.fixtures.large import large_catalog, large_managers

if TYPE_CHECKING:
    from gm_chat.managers.api import ManagerInfo

SEED = 500
FILE = Path(__file__).with_suffix(".jsonl")
FUNCTION_WORDS = frozenset(split_words("a about and at by for from in it its of on one or than that the them to use"))

QUESTIONS = (
    "How many {many} were there last month?",
    "Can you show me the {many} of Acme that are still open?",
    "which {many} did Mary Miller change yesterday",
    "Please list everything we know about {many} in Hamburg.",
    "I need the newest {one} before Friday",
    "What is the status of {one} 4711?",
    "Give me all {many} sorted by date, newest first.",
    "Is there any {one} without a responsible person?",
    "Compare this year's {many} with last year's",
    "hi, quick question: where do I find the {one} for our plant in Lyon?",
)


def name_words(info: ManagerInfo) -> list[str]:
    return split_words(info.name.removesuffix("Manager"))


def plural(word: str) -> str:
    if word.endswith("y") and word[-2] not in "aeiou":
        return f"{word[:-1]}ies"
    return f"{word}es" if word.endswith(("s", "x", "ch", "sh")) else f"{word}s"


def by_name(chance: random.Random, info: ManagerInfo) -> str:
    words = name_words(info)
    stem = info.name.removesuffix("Manager")
    return chance.choice([info.name, stem, " ".join(words), "_".join(words), " ".join(words).title(), stem.lower()])


def by_plural(chance: random.Random, info: ManagerInfo) -> str:
    *first, last = name_words(info)
    if first and chance.random() < 0.3:
        return f"{plural(last)} of {' '.join([*first[:-1], plural(first[-1])])}"
    return " ".join([*first, plural(last)])


def by_typo(chance: random.Random, info: ManagerInfo) -> str:
    return with_typos(chance, " ".join(name_words(info)))


def with_typos(chance: random.Random, text: str) -> str:
    """One random edit for each eight letters begun, anywhere, the spaces between the words included."""
    for _ in range((len(text) + 7) // 8):
        place = chance.randrange(len(text))
        letter = chance.choice(string.ascii_lowercase)
        match chance.choice(("delete", "insert", "replace", "swap")):
            case "delete":
                text = text[:place] + text[place + 1 :]
            case "insert":
                text = text[:place] + letter + text[place:]
            case "replace":
                text = text[:place] + letter + text[place + 1 :]
            case _:
                text = text[:place] + text[place : place + 2][::-1] + text[place + 2 :]
    return text


def by_question(chance: random.Random, info: ManagerInfo) -> str:
    words = name_words(info)
    one, many = " ".join(words), " ".join([*words[:-1], plural(words[-1])])
    if len(words) > 1 and chance.random() < 0.3:
        one = f"{words[-1]} of a {' '.join(words[:-1])}"
        many = f"{plural(words[-1])} of {' '.join([*words[:-2], plural(words[-2])])}"
    return chance.choice(QUESTIONS).format(one=one, many=many)


def by_description(chance: random.Random, info: ManagerInfo) -> str:
    """Four words of the description, in any order."""
    words = sorted(set(split_words(info.description)) - FUNCTION_WORDS)
    return " ".join(chance.sample(words, min(4, len(words))))


def by_alias(chance: random.Random, info: ManagerInfo) -> str:
    alias = chance.choice(CATALOG[info.name]["aliases"])
    *first, last = alias.split()
    many = " ".join([*first, plural(last)])
    return chance.choice([alias, many, chance.choice(QUESTIONS).format(one=alias, many=many)])


def by_alias_typo(chance: random.Random, info: ManagerInfo) -> str:
    aliases = [alias for alias in CATALOG[info.name]["aliases"] if len(alias) > 3]
    return with_typos(chance, chance.choice(aliases))


def by_use(chance: random.Random, info: ManagerInfo) -> str:
    """Four words of when to use it, in any order."""
    words = sorted(set(split_words(CATALOG[info.name]["use_when"])) - FUNCTION_WORDS)
    return " ".join(chance.sample(words, min(4, len(words))))


CATALOG = large_catalog()
CATALOG_KINDS = {"alias": by_alias, "alias typo": by_alias_typo, "use": by_use}
KINDS = {
    "name": by_name,
    "plural": by_plural,
    "typo": by_typo,
    "question": by_question,
    "description": by_description,
}


def lines() -> list[str]:
    chance = random.Random(SEED)  # noqa: S311 - made-up queries, no secret
    managers = large_managers()
    in_catalog = [info for info in managers if info.name in CATALOG]
    return [
        json.dumps({"kind": kind, "query": make(chance, info), "manager": info.name})
        for kinds in (KINDS, CATALOG_KINDS)
        for kind, make in kinds.items()
        for info in (chance.sample(managers, 100) if kinds is KINDS else chance.choices(in_catalog, k=100))
    ]


if __name__ == "__main__":
    FILE.write_text("\n".join(lines()) + "\n", encoding="utf-8")
