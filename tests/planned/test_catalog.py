from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gm_chat.planned.catalog import (
    CatalogError,
    ManagerCatalog,
    ManagerCatalogEntry,
    load_manager_catalog,
    normalize_match_text,
)
from gm_chat.settings import ChatConfigurationError

KNOWN: dict[str, Any] = {"PartManager": {}, "MaterialManager": {}, "OrderManager": {}}
PART: dict[str, Any] = {
    "domain": " manufacturing ",
    "aliases": ["Component", "spare-part", "component"],
    "use_when": "The question concerns designed or purchased components.",
    "distinguish_from": ["OrderManager", "MaterialManager"],
}
PARSED = ManagerCatalogEntry(
    domain="manufacturing",
    aliases=("component", "spare part"),
    use_when="The question concerns designed or purchased components.",
    distinguish_from=("MaterialManager", "OrderManager"),
)


def catalog() -> dict[str, Any]:
    return {"PartManager": PART}


async def later() -> dict[str, Any]:
    return {"PartManager": PART}


def broken() -> dict[str, Any]:
    raise LookupError("no such file")


def leaves() -> dict[str, Any]:
    raise SystemExit(3)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("PartManager", "part manager"),
        ("  part-MANAGER ", "part manager"),
        ("purchase_order", "purchase order"),
        ("Größe No.5", "grösse no 5"),
        ("\ufb01le", "file"),
        ("", ""),
        ("?!", ""),
    ],
)
def test_text_is_made_comparable(text: str, words: str) -> None:
    assert normalize_match_text(text) == words


@given(st.text())
def test_comparable_text_is_words_with_single_blanks_between(text: str) -> None:
    words = normalize_match_text(text)
    assert words == words.casefold()
    assert all(word and not word.isspace() for word in words.split(" ")) or words == ""


@pytest.mark.parametrize("source", [{"PartManager": PART}, catalog, "testproject.catalogs.shop"])
def test_every_kind_of_source(source: Any) -> None:
    loaded = load_manager_catalog(source, KNOWN)
    assert loaded.entries["PartManager"].aliases == ("component", "spare part")


def test_an_entry_is_trimmed_normalized_and_sorted() -> None:
    assert load_manager_catalog(catalog, KNOWN).entries == {"PartManager": PARSED}


def test_nothing_is_a_catalog_without_entries() -> None:
    empty = load_manager_catalog(None, KNOWN)
    assert empty == load_manager_catalog({}, {}) == ManagerCatalog.of({})
    assert empty.entries == {}


def test_it_cannot_be_changed() -> None:
    loaded = load_manager_catalog(catalog, KNOWN)
    with pytest.raises(TypeError):
        loaded.entries["OrderManager"] = PARSED  # type: ignore[index]  # it is the point of the test
    with pytest.raises(FrozenInstanceError):
        loaded.fingerprint = ""  # type: ignore[misc]  # as above
    source = {"PartManager": dict(PART)}
    loaded = load_manager_catalog(source, KNOWN)
    source["PartManager"]["domain"] = source["OrderManager"] = {}
    assert loaded.entries == {"PartManager": PARSED}


def test_the_fingerprint_depends_on_what_is_said_alone() -> None:
    other = {**PART, "distinguish_from": []}
    both = load_manager_catalog({"PartManager": PART, "OrderManager": other}, KNOWN)
    respelt = {**PART, "aliases": ("SPARE part", "component"), "owner": "sales"}
    turned = load_manager_catalog({"OrderManager": other, "PartManager": respelt}, KNOWN)
    assert both == turned
    assert both.fingerprint == turned.fingerprint
    assert len(both.fingerprint) == 64
    changed = [
        {"PartManager": {**PART, key: value}, "OrderManager": other}
        for key, value in (("domain", "x"), ("aliases", []), ("use_when", "x"), ("distinguish_from", []))
    ]
    fingerprints = {load_manager_catalog(each, KNOWN).fingerprint for each in changed}
    assert len(fingerprints | {both.fingerprint}) == 5


@pytest.mark.parametrize(
    ("source", "parts"),
    [
        (3, ["a int is neither a mapping, nor a callable, nor the path of one"]),
        (["PartManager"], ["a list is neither"]),
        (lambda: ["PartManager"], ["gave a list", "mapping of manager names"]),
        (lambda: None, ["gave a NoneType"]),
        (later, ["async function", "plain def"]),
        (broken, ["LookupError: no such file"]),
        (leaves, ["SystemExit: 3"]),
        ("nowhere.at_all", ["nowhere.at_all", "cannot be imported"]),
        ("catalog", ["'catalog'", "cannot be imported"]),
        ("os.sep", ["'os.sep'", "no callable"]),
        ({1: PART}, ["its key 1 is no manager's name"]),
        ({None: PART}, ["its key None"]),
        ({" ": PART}, ["its key ' '"]),
        ({"PratManager": PART}, ["'PratManager' is no exposed manager", "Did you mean 'PartManager'?"]),
        ({"PartManager": "part"}, ["'PartManager' must be a mapping with 'domain', 'aliases', 'use_when' and"]),
        ({"PartManager": {}}, ["'PartManager' lacks 'domain', 'aliases', 'use_when', 'distinguish_from'."]),
        (
            {"PartManager": {**{key: PART[key] for key in PART if key != "aliases"}, "alias": []}},
            ["'PartManager' lacks 'aliases' ('alias' means nothing)."],
        ),
        ({"PartManager": {**PART, "domain": ""}}, ["'PartManager': 'domain' must say something"]),
        ({"PartManager": {**PART, "domain": 3}}, ["'domain' must be text, not a int"]),
        ({"PartManager": {**PART, "use_when": " "}}, ["'use_when' must say something"]),
        ({"PartManager": {**PART, "use_when": None}}, ["'use_when' must be text, not a NoneType"]),
        ({"PartManager": {**PART, "aliases": "part"}}, ["'aliases' must be a list of texts, not a str"]),
        ({"PartManager": {**PART, "aliases": {"part": 1}}}, ["'aliases' must be a list of texts, not a dict"]),
        ({"PartManager": {**PART, "aliases": None}}, ["'aliases' must be a list of texts, not a NoneType"]),
        ({"PartManager": {**PART, "aliases": [1]}}, ["each of 'aliases' must be text, not a int"]),
        ({"PartManager": {**PART, "aliases": [""]}}, ["each of 'aliases' must say something"]),
        ({"PartManager": {**PART, "aliases": ["?!"]}}, ["the alias '?!' has neither letters nor digits"]),
        ({"PartManager": {**PART, "distinguish_from": "OrderManager"}}, ["'distinguish_from' must be a list"]),
        ({"PartManager": {**PART, "distinguish_from": ["Order"]}}, ["'distinguish_from' names 'Order', which is no"]),
        ({"PartManager": {**PART, "distinguish_from": ["PartManager"]}}, ["names 'PartManager' itself"]),
    ],
)
def test_mistakes_are_named(source: Any, parts: list[str]) -> None:
    with pytest.raises(ChatConfigurationError) as caught:
        load_manager_catalog(source, KNOWN)
    message = str(caught.value)
    assert all(part in message for part in parts), message
    assert "planned['catalog']" in message or "'planned.catalog'" in message
    assert len(message) < 400


def test_long_mistakes_make_short_messages() -> None:
    for source in ({"x" * 9_000: PART}, {"PartManager": {**PART, "aliases": ["?" * 9_000]}}):
        with pytest.raises(ChatConfigurationError) as caught:
            load_manager_catalog(source, KNOWN)
        assert len(str(caught.value)) < 400


def test_an_entry_alone_may_name_managers_that_are_not_known() -> None:
    assert ManagerCatalogEntry.parse("PartManager", PART) == PARSED
    with pytest.raises(CatalogError, match="'MaterialManager', which is no exposed manager"):
        ManagerCatalogEntry.parse("PartManager", {**PART, "distinguish_from": ["MaterialManager"]}, {"PartManager"})


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.binary(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["PartManager", "domain", "aliases", "use_when", "distinguish_from"]) | st.text(max_size=3),
            inner,
            max_size=5,
        )
    ),
    max_leaves=12,
)


@given(ANYTHING | st.fixed_dictionaries({"PartManager": st.fixed_dictionaries(dict.fromkeys(PART, ANYTHING))}))
def test_nothing_odd_raises_anything_else(source: Any) -> None:
    if isinstance(source, str):
        return  # a dotted path would be imported
    try:
        loaded = load_manager_catalog(source, KNOWN)
    except ChatConfigurationError:
        return
    assert set(loaded.entries) <= set(KNOWN)
