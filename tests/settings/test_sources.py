"""How sources are merged, and what is said when one of them is wrong."""

import traceback
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gm_chat.settings import ChatConfigurationError, ChatSettings, build_settings
from gm_chat.settings.sources import ENVIRONMENT, Source, unknown_at


def sources(weak: Any = (), strong: Any = (), environment: Any = (), *, tolerant: bool = False) -> list[Source]:
    return [
        Source('GENERAL_MANAGER["CHAT"]', dict(weak), tolerant=tolerant),
        Source("GM_CHAT", dict(strong)),
        Source(ENVIRONMENT, dict(environment)),
    ]


def build(*args: Any, **kwargs: Any) -> ChatSettings:
    return build_settings(sources(*args, **kwargs))


def refusal(*args: Any, **kwargs: Any) -> str:
    with pytest.raises(ChatConfigurationError) as caught:
        build(*args, **kwargs)
    assert caught.value.__cause__ is None
    return str(caught.value)


def test_the_stronger_source_wins_key_by_key() -> None:
    settings = build({"max_results": 1, "url": "a", "ttl_hours": 1}, {"max_results": 2, "url": "b"}, {"max_results": 3})
    assert (settings.max_results, settings.url, settings.ttl_hours) == (3, "/b/", 1)


def test_a_stronger_mapping_replaces_the_weaker_one_whole() -> None:
    settings = build({"rate_limit": {"requests": 1, "tokens": 9}}, {"rate_limit": {"requests": 2}})
    assert settings.rate_limit.requests == 2
    assert settings.rate_limit.tokens is None
    assert settings.rate_limit.window_seconds == 3600


def test_the_environment_merges_into_the_winner() -> None:
    settings = build(
        {"rate_limit": {"input_tokens": 5}},
        {"rate_limit": {"requests": 1, "tokens": 9}, "provider_config": {"a": {"b": 1, "c": 2}}},
        {"rate_limit": {"requests": 2}, "provider_config": {"a": {"b": 3}}},
    )
    assert (settings.rate_limit.requests, settings.rate_limit.tokens) == (2, 9)
    assert settings.rate_limit.input_tokens is None
    assert settings.provider_config == {"a": {"b": 3, "c": 2}}


@pytest.mark.parametrize(
    ("weak", "strong", "environment", "config"),
    [
        ({"provider": "a", "provider_config": {"key": 1}}, {"provider": "b"}, {}, {}),
        ({"provider": "a", "provider_config": {"key": 1}}, {"provider_config": {"x": 1}}, {}, {"x": 1}),
        (
            {"provider": "a", "provider_config": {"key": 1}},
            {"provider": "b", "provider_config": {"x": 1}},
            {},
            {"x": 1},
        ),
        ({"provider": "a", "provider_config": {"key": 1}}, {}, {"provider": "b"}, {}),
        (
            {"provider": "a", "provider_config": {"key": 1}},
            {},
            {"provider": "b", "provider_config": {"x": 1}},
            {"x": 1},
        ),
        ({"provider": "a", "provider_config": {"key": 1}}, {}, {"provider_config": {"x": 1}}, {"key": 1, "x": 1}),
        ({"provider_config": {"key": 1}}, {"provider": "b"}, {}, {}),
        ({"provider": "a"}, {}, {}, {}),
    ],
)
def test_no_key_of_one_vendor_reaches_another(weak: Any, strong: Any, environment: Any, config: Any) -> None:
    assert build(weak, strong, environment).provider_config == config


def test_that_holds_for_profiles_too() -> None:
    profile = {"provider": "a", "provider_config": {"key": 1}, "trust_group": "t"}
    settings = build({}, {"provider_profiles": {"p": profile}}, {"provider_profiles": {"p": {"provider": "b"}}})
    assert settings.provider_profiles["p"] == {"provider": "b", "provider_config": {}, "trust_group": "t"}


def test_a_vendor_s_own_key_called_provider_is_nothing_special() -> None:
    config = {"provider": {"order": ["a"], "sort": "price"}}
    settings = build({}, {"provider_config": config}, {"provider_config": {"provider": {"sort": "speed"}}})
    assert settings.provider_config["provider"] == {"order": ("a",), "sort": "speed"}
    assert list(settings.provider_config) == ["provider"]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"provder": "x"}, "[\"provder\"] is not a chat setting. Did you mean 'provider'?"),
        ({"rate_limit": {"reqests": 1}}, '["rate_limit"]["reqests"] is not a chat setting. Did you mean \'requests\'?'),
        ({"audit": {"levl": 1}}, '["audit"]["levl"] is not a chat setting. Did you mean \'level\'?'),
        ({"planned": {"rols": {}}}, '["planned"]["rols"] is not a chat setting. Did you mean \'roles\'?'),
        (
            {"provider_profiles": {"p": {"trustgroup": "x"}}},
            '["provider_profiles"]["p"]["trustgroup"] is not a chat setting. Did you mean \'trust_group\'?',
        ),
        ({"rate_limit": {"zzz": 1}}, "Known: address_requests, cache, input_tokens, on_failure, "),
    ],
)
def test_unknown_names_are_refused_at_every_level(values: Any, message: str) -> None:
    assert message in refusal({}, values)
    # Also where a stronger source would have hidden the mistake.
    assert message in refusal(values, {name: {} for name in values if name != "provder"})
    assert refusal(values).startswith('GENERAL_MANAGER["CHAT"][')


def test_free_mappings_take_any_name() -> None:
    build({}, {"provider_config": {"anything": {"at": "all"}}, "plugins": {"weather": {"city": "Oslo"}}})


def test_every_unknown_name_is_told_at_once() -> None:
    lines = refusal({"a1": 1, "rate_limit": {"b1": 1}}, {"c1": 1}).splitlines()
    assert [line.split(" is not")[0] for line in lines] == [
        'GENERAL_MANAGER["CHAT"]["a1"]',
        'GENERAL_MANAGER["CHAT"]["rate_limit"]["b1"]',
        'GM_CHAT["c1"]',
    ]


def test_a_tolerant_source_may_hold_unknown_names() -> None:
    weak = {"newer": 1, "rate_limit": {"requests": 4, "newer": 2}, "max_results": 3}
    settings = build(weak, tolerant=True)
    assert (settings.max_results, settings.rate_limit.requests) == (3, 4)
    unknown = sources(weak, tolerant=True)[0].unknown()
    assert [name.path for name in unknown] == [("newer",), ("rate_limit", "newer")]
    assert 'GM_CHAT["newer"]' in refusal(weak, {"newer": 1}, tolerant=True)
    assert refusal({"max_results": 0}, tolerant=True).startswith('GENERAL_MANAGER["CHAT"]["max_results"]')


def test_an_error_names_the_source_that_is_to_blame() -> None:
    assert refusal({"max_results": 0}).startswith('GENERAL_MANAGER["CHAT"]["max_results"]: ')
    assert refusal({"max_results": 1}, {"max_results": 0}).startswith('GM_CHAT["max_results"]: ')
    environment = Source(
        ENVIRONMENT, {"rate_limit": {"requests": "x"}}, variables=frozenset({"GM_CHAT_RATE_LIMIT__REQUESTS"})
    )
    with pytest.raises(ChatConfigurationError, match=r"^GM_CHAT_RATE_LIMIT__REQUESTS: "):
        build_settings([Source("GM_CHAT", {"rate_limit": {"tokens": 1}}), environment])
    with pytest.raises(ChatConfigurationError, match=r'^GM_CHAT\["rate_limit"\]\["tokens"\]: '):
        build_settings([Source("GM_CHAT", {"rate_limit": {"tokens": "x"}}), Source(ENVIRONMENT, {"rate_limit": {}})])


def test_what_is_missing_is_told_at_its_place() -> None:
    half = {"provider_profiles": {"fast": {"provider": "x"}}}
    assert refusal({}, half) == 'GM_CHAT["provider_profiles"]["fast"]["trust_group"]: is required'
    expected = "the environment (GM_CHAT_PROVIDER_PROFILES__FAST__TRUST_GROUP): is required"
    assert refusal({}, {}, half) == expected


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"rate_limit": {1: 2}}, 'GM_CHAT["rate_limit"][1] is not a chat setting.'),
        (
            {"provider_profiles": {1: {}}},
            'GM_CHAT["provider_profiles"]: must have text as keys, not a value of type int',
        ),
        ({"planned": {"roles": {1: "a"}}}, 'GM_CHAT["planned"]["roles"]: must have text as keys'),
        ({"plugins": {1: {}}}, 'GM_CHAT["plugins"]: must have text as keys'),
    ],
)
def test_keys_must_be_text(values: Any, message: str) -> None:
    assert refusal({}, values).startswith(message)


def test_every_fault_gets_a_line() -> None:
    lines = refusal({}, {"max_results": 0, "audit": {"level": "x"}, "ttl_hours": True}).splitlines()
    assert [line.split(":")[0] for line in lines] == [
        'GM_CHAT["max_results"]',
        'GM_CHAT["ttl_hours"]',
        'GM_CHAT["audit"]["level"]',
    ]
    assert lines[0] == 'GM_CHAT["max_results"]: must be greater than 0, got 0'
    assert lines[2] == "GM_CHAT[\"audit\"][\"level\"]: must be 'off', 'messages' or 'all', got a str"


def test_a_fault_inside_a_set_names_the_set() -> None:
    assert (
        refusal({}, {"allowed_mutations": {3}}) == 'GM_CHAT["allowed_mutations"][0]: must be a valid string, got a set'
    )


def test_a_single_value_has_no_parts() -> None:
    unknown = unknown_at(("url", "x"))
    assert unknown is not None
    assert unknown.hint == "'url' is a single value."
    assert refusal({}, {"url": {"x": 1}}) == 'GM_CHAT["url"]: must be a valid string, got a dict'


SECRET = "sk-live-4242"
wrong = st.recursive(
    st.just(SECRET) | st.just([SECRET]) | st.just({SECRET: 1}) | st.just({"a": SECRET}),
    lambda inner: st.dictionaries(
        st.sampled_from(["requests", "level", "roles", "fast", "provider"]), inner, max_size=3
    ),
    max_leaves=4,
)


names = st.sampled_from(sorted(ChatSettings.model_fields.keys() - {"confirm_mutations"}))  # its faults are told by name


@given(st.dictionaries(names, wrong, min_size=1, max_size=4))
def test_no_error_quotes_a_value_that_may_be_a_secret(values: dict[str, Any]) -> None:
    """Keys are names, and shown; values stay unseen, in the message and in the exceptions behind it."""
    error = None
    try:
        build_settings([Source("GM_CHAT", values)])
    except ChatConfigurationError as caught:
        error = caught
    assume(error is not None)
    shown = "".join(traceback.format_exception(error))
    assert SECRET not in shown.replace(f'["{SECRET}"]', "").replace(f"role '{SECRET}'", "")
