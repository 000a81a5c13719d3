"""A corpus of keys and texts: no secret survives, and nothing dies that only looks a little like one."""

import json
import time
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gm_chat.audit import DEFAULT_REDACT_FIELDS
from gm_chat.redaction import REDACTED, is_secret_key, redact, redact_text

TERMS: Final = DEFAULT_REDACT_FIELDS
SECRET: Final = "hunter2-Zq9"
LONG: Final = "Zq9hunter2Zq9hunter2Zq9hunter2Zq9hunter2"
JWT: Final = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.hunter2hunter2"

PLACEHOLDERS: Final = {"<SECRET>": SECRET, "<LONG>": LONG, "<JWT>": JWT}


def corpus(part: str) -> list[str]:
    """A part of ``tests/data/redaction.json``, whose secrets are placeholders: a scanner might take them for real."""
    texts: list[str] = json.loads(Path(__file__).with_name("data").joinpath("redaction.json").read_text("utf-8"))[part]
    for name, text in PLACEHOLDERS.items():
        texts = [item.replace(name, text) for item in texts]
    return texts


SECRET_KEYS: Final = corpus("secret_keys")
INNOCENT_KEYS: Final = corpus("innocent_keys")
SECRET_TEXTS: Final = corpus("secret_texts")
"""Each holds the secret; what remains must not."""

INNOCENT_TEXTS: Final = corpus("innocent_texts")
SECRETS_OF_THEIR_OWN: Final = ["AKIAIOSFODNN7EXAMPLE", "ASIAIOSFODNN7EXAMPLE"]


def test_the_corpus_is_large_enough() -> None:
    for part in (SECRET_KEYS, INNOCENT_KEYS, SECRET_TEXTS, INNOCENT_TEXTS):
        assert len(set(part)) == len(part)
    assert len(SECRET_KEYS) + len(INNOCENT_KEYS) + len(SECRET_TEXTS) + len(INNOCENT_TEXTS) >= 200


def test_secret_keys_are_known() -> None:
    assert [key for key in SECRET_KEYS if not is_secret_key(key, TERMS)] == []
    assert redact({key: [SECRET] for key in SECRET_KEYS}, TERMS) == dict.fromkeys(SECRET_KEYS, REDACTED)


def test_innocent_keys_are_left_alone() -> None:
    assert [key for key in INNOCENT_KEYS if is_secret_key(key, TERMS)] == []
    value = {key: {"as": [key, 5]} for key in INNOCENT_KEYS}
    assert redact(value, TERMS) == value


@pytest.mark.parametrize("text", [*SECRET_TEXTS, *SECRETS_OF_THEIR_OWN])
@pytest.mark.parametrize("around", ["{}", "Look:\n{}", '"{}', "x='1'\n{}\nname: Bolt"])
def test_no_secret_survives_in_a_text(text: str, around: str) -> None:
    cleaned = redact_text(around.format(text), TERMS)
    assert "hunter2" not in cleaned
    assert all(secret not in cleaned for secret in SECRETS_OF_THEIR_OWN)
    assert REDACTED in cleaned
    assert redact_text(cleaned, TERMS) == cleaned


@pytest.mark.parametrize("text", INNOCENT_TEXTS)
def test_innocent_texts_are_left_alone(text: str) -> None:
    assert redact_text(text, TERMS) == text
    assert redact({"rows": [text, {"note": text}]}, TERMS) == {"rows": [text, {"note": text}]}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("password=x for https://u:pw@db/x", "password=[redacted] for https://u:[redacted]@db/x"),
        ("a=1,token=x,b=2", "a=1,token=[redacted],b=2"),
        ("token=x&page=2", "token=[redacted]&page=2"),
        ("password: x\nname: y", "password: [redacted]\nname: y"),
        ("host=db password='a b' user=x", "host=db password='[redacted]' user=x"),
        ("<key>x</key><name>y</name>", "<key>[redacted]</key><name>y</name>"),
        ('{"a":1,"key":"x"}', '{"a": 1, "key": "[redacted]"}'),
        ("GET /?q=1 Cookie: a=1\nHost: x", "GET /?q=1 Cookie: [redacted]\nHost: x"),
    ],
)
def test_what_stands_around_a_secret_stays(text: str, expected: str) -> None:
    assert redact_text(text, TERMS) == expected


def test_secrets_in_keys_die_too() -> None:
    assert redact({f"sk-{LONG}": 1, "name": 2}, TERMS) == {REDACTED: 1, "name": 2}


def test_other_terms_replace_the_default_ones() -> None:
    terms = ("iban", "order-code")
    assert redact({"IBAN": 1, "orderCode": 2, "token": 3, "password": 4}, terms) == {
        "IBAN": REDACTED,
        "orderCode": REDACTED,
        "token": 3,
        "password": 4,
    }
    assert redact_text("iban: x\nkey: y", terms) == "iban: [redacted]\nkey: y"


# --- whatever stands around it ------------------------------------------------------------------------------------

secrets = st.text("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!$+./_-", min_size=6, max_size=20).map(
    lambda text: f"Zq9{text}9qZ"
)
noise = st.text(max_size=30) | st.sampled_from(['{"a": "', "x='", "[", "name: ", "\\", '\\"', "<a>", "=", "://"])
templates = st.sampled_from(
    [
        "password={}",
        "api_key: {}",
        "secret = '{}'",
        '"token": "{}"',
        "--password {}",
        "Authorization: Bearer {}",
        "Cookie: a={}",
        "postgres://u:{}@h",
        "<secret>{}</secret>",
        "sk-0123456789abcdef{}",
        "ghp_0123456789abcdef\n-----BEGIN PRIVATE KEY-----{}",
    ]
)


@given(noise, templates, secrets, noise)
def test_a_secret_dies_wherever_it_stands(before: str, template: str, secret: str, after: str) -> None:
    if "sk-" in template:  # a key of a vendor ends where its alphabet does
        secret = "".join(filter(str.isalnum, secret))
    cleaned = redact_text(f"{before} {template.format(secret)} {after}", TERMS)
    assert secret not in cleaned


json_values: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=12,
)


@given(json_values, st.sampled_from(SECRET_KEYS), json_values)
def test_nothing_under_a_secret_key_survives_however_it_is_written(value: Any, key: str, inner: Any) -> None:
    whole = [value, {"deep": [{key: {"x": [SECRET, inner]}}]}]
    assert SECRET not in json.dumps(redact(whole, TERMS))
    assert SECRET not in redact_text(json.dumps(whole), TERMS)
    assert SECRET not in redact_text(json.dumps({"text": json.dumps(whole)}), TERMS)


@given(json_values)
def test_what_it_makes_is_json_again_and_stays_as_it_is(value: Any) -> None:
    cleaned = redact(value, TERMS)
    assert redact(cleaned, TERMS) == cleaned
    json.dumps(cleaned)


# --- time ---------------------------------------------------------------------------------------------------------

HOSTILE: Final = [
    "a",
    "://",
    "a-",
    "bearer ",
    '"a":"',
    "a=",
    "://a:",
    "key=",
    "key: a ",
    "key='",
    '\\"',
    '"key":\\"',
    "--key ",
    "<a ",
    "<key>",
    "-----BEGIN PRIVATE KEY-----",
    "authorization:",
    'cookie="',
    "eyJaaaaaa.",
    "password is ",
    "login a password ",
    "-u a",
    "a&",
    "key=&a",
    "key=,a",
    "\n ",
    "key: |\n ",
    "[",
    '{"a":',
    "sk-",
    "1234567890",
    "token=a;b-",
    "password '",
    "SG.",
    "SG.aaaaaaaaaaaaaaaaaaaa",
    "key%3D",
    "key \t",
    "key\\",
    "AKIA",
    " login ",
]


@pytest.mark.parametrize("unit", HOSTILE)
def test_time_grows_with_the_text_and_no_faster(unit: str) -> None:
    def seconds(length: int) -> float:
        text = "x " + unit * (length // len(unit))
        started = time.thread_time()
        redact_text(text, TERMS)
        return time.thread_time() - started

    seconds(1_000)
    short, long = min(seconds(10_000) for _ in range(3)), seconds(160_000)
    # 16 times the text: a quadratic pattern would take 256 times as long.
    assert long < max(80 * short, 0.5)
