import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gm_chat.audit import (
    DEFAULT_REDACT_FIELDS,
    REDACTED,
    AuditPolicy,
    assistant_message_event,
    tool_call_event,
    tool_result_event,
    user_message_event,
)
from gm_chat.plugin import Actor, TurnContext

POLICY = AuditPolicy(level="all")
CONTEXT = TurnContext("turn-1", "12", Actor(user_id="7"), "password=hunter2 for https://u:pw@db/x", "sse")


@pytest.mark.parametrize(
    "key",
    [
        "password", "PASSWORD", "user_password", "passwordHash", "client_secret", "clientSecret", "apiKey", "API-KEY",
        "APIKey", "api.key", "x-api-key", "key", "access_token", "accessToken", "OAuth2Token", "token2", "credential",
        "password__icontains", "apikey", "credentials", "passwd", "user passphrase", "secrets", "Secret Key",
    ],
)  # fmt: skip
def test_secret_keys(key: str) -> None:
    assert POLICY.is_secret(key)
    assert POLICY.redact({key: "x", "other": 1}) == {key: REDACTED, "other": 1}


@pytest.mark.parametrize(
    "key",
    [
        "tokenizer", "monkey", "input_tokens", "outputTokens", "tokens", "keyword", "keys", "keyboard", "secretary",
        "passwordless", "tokenized_text", "turkey", "", "123", "Schlüssel", "name",
    ],
)  # fmt: skip
def test_innocent_keys(key: str) -> None:
    assert not POLICY.is_secret(key)
    assert POLICY.redact({key: 5}) == {key: 5}


def test_terms_may_have_several_words_and_other_letters() -> None:
    policy = AuditPolicy(redact_fields=("iban", "order-code", "schlüssel"))
    assert all(map(policy.is_secret, ["IBAN", "customerIban", "orderCode", "the_order_code_x", "Schlüssel_1"]))
    assert not any(map(policy.is_secret, ["order", "code", "code_order", "token", "key"]))


def test_redaction_goes_all_the_way_down_and_replaces_whole_values() -> None:
    value = {"rows": [{"name": "Bolt", "api_key": {"id": 1}}, {"token": None}], "usage": {"input_tokens": 7}}
    assert POLICY.redact(value) == {
        "rows": [{"name": "Bolt", "api_key": REDACTED}, {"token": REDACTED}],
        "usage": {"input_tokens": 7},
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Authorization: Bearer abcdef", f"Authorization: Bearer {REDACTED}"),
        ("authorization: basic dXNlcg==", f"authorization: basic {REDACTED}"),
        ("got Bearer eyJhbGciOi.J9-x_y here", f"got Bearer {REDACTED} here"),
        ("BEARER ABCDEFGH", f"BEARER {REDACTED}"),
        ("bearer abc.defgh", f"bearer {REDACTED}"),
        ("postgres://bob:p@ss:w@db/x and ok", f"postgres://bob:{REDACTED}@db/x and ok"),
        ("redis://:pw@host", f"redis://:{REDACTED}@host"),
        ("https://x.y/?access_token=abc&page=2", f"https://x.y/?access_token={REDACTED}&page=2"),
        ("host=db password='a b' user=x", f"host=db password='{REDACTED}' user=x"),
        ('{"password": "hun\\"ter", "name": "x"}', f'{{"password": "{REDACTED}", "name": "x"}}'),
        ("use sk-proj-0123456789abcdef please", f"use {REDACTED} please"),
    ],
)
def test_secrets_inside_text(text: str, expected: str) -> None:
    assert POLICY.redact_text(text) == expected
    assert POLICY.redact_text(expected) == expected


@pytest.mark.parametrize(
    "text",
    [
        "bearer bonds, bearer instruments. The bearer.",
        "a bearer token",
        "https://example.com:8080/x@y",
        "mail bob@example.com",
        "at 12:30 we count input_tokens=5, monkey=2",
        '{"name": "token", "input_tokens": 5}',
        "sk-short",
        "",
    ],
)
def test_innocent_text_stays(text: str) -> None:
    assert POLICY.redact_text(text) == text


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=15,
)


@given(json_values, st.sampled_from(["apiKey", "user-token", "PASSWORD"]))
def test_a_secret_never_survives_wherever_it_stands(value: Any, key: str) -> None:
    marker = "zq9-the-secret-zq9"
    cleaned = POLICY.clean([value, {"deep": [{key: {"x": [marker, value]}}]}, f"Bearer {marker}"])
    assert marker not in json.dumps(cleaned)


def test_results_are_cut_as_text_and_say_so() -> None:
    small = {"data": [{"name": "Bolt"}]}
    assert POLICY.clean_result(small) == {"result": small, "result_truncated": False}
    policy = AuditPolicy(level="all", max_result_size=20)
    large = policy.clean_result({"data": ["x" * 100], "password": "hunter2"})
    assert large == {"result": '{"data":["xxxxxxxxxx', "result_truncated": True}
    exact = AuditPolicy(max_result_size=len('{"data":[{"name":"Bolt"}]}'))
    assert exact.clean_result(small)["result_truncated"] is False


def test_what_has_no_json_form_is_named_by_its_type() -> None:
    assert POLICY.clean({"x": object()}) == "[dict without a JSON form]"


@pytest.mark.parametrize(
    ("enabled", "level", "messages", "tools"),
    [
        (False, "all", False, False),
        (True, "off", False, False),
        (True, "messages", True, False),
        (True, "all", True, True),
    ],
)
def test_levels(enabled: bool, level: str, messages: bool, tools: bool) -> None:
    settings = {"enabled": enabled, "level": level, "logger": None, "max_result_size": 9, "redact_fields": ["iban"]}
    policy = AuditPolicy.from_settings(settings)
    assert (policy.messages, policy.tools) == (messages, tools)
    assert (policy.max_result_size, policy.redact_fields) == (9, ("iban",))


def test_the_defaults_are_the_specification_s() -> None:
    assert AuditPolicy() == AuditPolicy(level="off", max_result_size=4096, redact_fields=DEFAULT_REDACT_FIELDS)
    assert DEFAULT_REDACT_FIELDS == ("password", "secret", "token", "key", "credential")


def test_events() -> None:
    head = {
        "at": "1970-01-01T00:00:01.500+00:00",
        "turn_id": "turn-1",
        "conversation_id": "12",
        "actor": "user:7",
        "transport": "sse",
    }
    text = f"password={REDACTED} for https://u:{REDACTED}@db/x"
    args = {"filters": {"api_key": "k", "name": "Bolt"}}
    events = [
        (user_message_event(CONTEXT, POLICY, at=1.5), {"event_type": "user_message", **head, "content": text}),
        (
            assistant_message_event(CONTEXT, "Bearer abc123def", POLICY, at=1.5),
            {"event_type": "assistant_message", **head, "content": f"Bearer {REDACTED}"},
        ),
        (
            tool_call_event(CONTEXT, "query", args, POLICY, at=1.5, call_id="c1"),
            {
                "event_type": "tool_call",
                **head,
                "call_id": "c1",
                "tool_name": "query",
                "args": {"filters": {"api_key": REDACTED, "name": "Bolt"}},
            },
        ),
        (
            tool_result_event(CONTEXT, "query", {"data": []}, POLICY, at=1.5),
            {
                "event_type": "tool_result",
                **head,
                "call_id": None,
                "tool_name": "query",
                "result": {"data": []},
                "result_truncated": False,
            },
        ),
    ]
    for event, expected in events:
        assert event == expected
        assert list(event) == list(expected)
        json.dumps(event)


def test_a_session_key_never_stands_in_an_event() -> None:
    context = TurnContext("t", None, Actor(session_key="the-session-key"), "hi", "http")
    event = user_message_event(context, POLICY, at=0)
    assert event["actor"].startswith("session:")
    assert "the-session-key" not in json.dumps(event)
    assert event["actor"] == user_message_event(context, POLICY, at=1)["actor"]
    assert user_message_event(TurnContext("t", None, Actor(), "hi", "http"), POLICY, at=0)["actor"] == "anonymous"


def test_it_imports_no_django() -> None:
    code = "import sys, gm_chat.audit, gm_chat.engine.audit; print('django' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
