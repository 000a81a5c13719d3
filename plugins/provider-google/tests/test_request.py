"""What goes out: roles, results, names, and signatures on the parts that they came with."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from gm_chat_provider_google.config import GoogleConfig
from gm_chat_provider_google.request import build_request, wire_name
from gm_chat_provider_google.signatures import PLACEHOLDER, PartsLog

from gm_chat.providers.base import CallOptions, Message, ToolCallEvent, ToolDefinition

ASK = Message("user", "Which parts are there?")


def contents(*messages: Message, model: str = "gemini", signed: bool = True) -> list[Any]:
    body = build_request(GoogleConfig(model=model), [ASK, *messages], [], CallOptions(), signed=signed)
    assert body["contents"][0] == {"role": "user", "parts": [{"text": ASK.content}]}
    return body["contents"][1:]  # type: ignore[no-any-return]  # the body is Any


def answer(text: str, *calls: ToolCallEvent, **metadata: Any) -> Message:
    return Message("assistant", text, calls, provider="google", metadata=metadata)


def result(id: str, content: str = "[]", name: str = "query") -> Message:
    return Message("tool", content, tool_call_id=id, tool_name=name)


class TestHistory:
    def test_system_messages_are_the_instruction(self) -> None:
        messages = [Message("system", "Be brief."), ASK, Message("system", "Earlier: hello.")]
        body = build_request(GoogleConfig.read({}), messages, [], CallOptions())
        assert body["systemInstruction"] == {"parts": [{"text": "Be brief."}, {"text": "Earlier: hello."}]}
        assert [content["role"] for content in body["contents"]] == ["user"]

    def test_results_follow_their_calls_in_one_content_and_the_user_joins_them(self) -> None:
        messages = (
            answer("I look.", ToolCallEvent("a", "query", {"n": 1}), ToolCallEvent("b", "find_path", {})),
            result("b", '{"x": 2}', "find_path"),
            result("a", '{"x": 1}'),
            Message("user", "And now?"),
        )
        assert contents(*messages) == [
            {
                "role": "model",
                "parts": [
                    {"text": "I look."},
                    {"functionCall": {"name": "query", "args": {"n": 1}}},
                    {"functionCall": {"name": "find_path", "args": {}}},
                ],
            },
            {
                "role": "user",
                "parts": [
                    {"functionResponse": {"name": "query", "response": {"x": 1}}},
                    {"functionResponse": {"name": "find_path", "response": {"x": 2}}},
                    {"text": "And now?"},
                ],
            },
        ]

    @pytest.mark.parametrize(
        ("content", "response"),
        [
            ('{"data": [], "total_count": 0}', {"data": [], "total_count": 0}),
            ('{"error": {"code": "x"}}', {"error": {"code": "x"}}),
            ('{"error": 1, "data": 2}', {"output": {"error": 1, "data": 2}}),
            ('{"output": 1}', {"output": {"output": 1}}),
            ("{}", {"output": {}}),
            ("[1, 2]", {"output": [1, 2]}),
            ("null", {"output": None}),
            ('"text"', {"output": "text"}),
            ("no JSON", {"output": "no JSON"}),
            ('<data-0a>{"data": ["</data-0b>"]}</data-0a>', {"data-0a": {"data": ["</data-0b>"]}}),
            ('<data-0a>{"error": {"code": "x"}}</data-0a>', {"error": {"data-0a": {"code": "x"}}}),
            ("<data-0a>[1]</data-0a>", {"data-0a": {"output": [1]}}),
            ("<data-0a>[1]</data-0a>\nAnswer now.", {"data-0a": {"output": [1]}, "note": "Answer now."}),
            (
                '<data-0a>{"error": {"code": "x"}}</data-0a>\nCall it so.',
                {"error": {"data-0a": {"code": "x"}, "note": "Call it so."}},
            ),
            ('{"x": NaN}', {"output": '{"x": NaN}'}),
            ('{"id": 9007199254740993, "small": [9007199254740992]}', {"id": "9007199254740993", "small": [2**53]}),
        ],
    )
    def test_a_result_is_an_object(self, content: str, response: dict[str, Any]) -> None:
        _, results = contents(answer("", ToolCallEvent("a", "query", {})), result("a", content))
        assert results["parts"] == [{"functionResponse": {"name": "query", "response": response}}]

    def test_large_numbers_stay_exact_in_arguments(self) -> None:
        model, _ = contents(answer("", ToolCallEvent("a", "query", {"id": -(2**60), "flag": True})), result("a"))
        assert model["parts"][0]["functionCall"]["args"] == {"id": str(-(2**60)), "flag": True}

    def test_only_an_id_of_the_server_goes_back(self) -> None:
        own = ToolCallEvent("server-1", "query", {}, metadata={"id": "server-1"})
        model, results = contents(
            answer("", own, ToolCallEvent("call_1", "query", {})), result("server-1"), result("call_1")
        )
        assert [part["functionCall"].get("id") for part in model["parts"]] == ["server-1", None]
        assert [part["functionResponse"].get("id") for part in results["parts"]] == ["server-1", None]

    def test_an_id_that_the_server_gave_twice_stays_unique(self) -> None:
        own = ToolCallEvent("a", "query", {}, metadata={"id": "a"})
        model, results = contents(answer("", own, own), result("a"), result("a"))
        ids = [part["functionCall"]["id"] for part in model["parts"]]
        assert ids[0] == "a"
        assert ids[1] not in ("a", "")
        assert [part["functionResponse"]["id"] for part in results["parts"]] == ids


class TestTools:
    @pytest.mark.parametrize(
        ("name", "wire"),
        [
            ("query", "query"),
            ("query_Part-1.2:3", "query_Part-1.2:3"),
            ("no such tool", "no_such_tool"),
            ("3d", "_3d"),
            ("größe", "gr__e"),
            ("", "_"),
            ("x" * 100, "x" * 64),
            ("3" * 100, "_" + "3" * 63),
        ],
    )
    def test_names(self, name: str, wire: str) -> None:
        assert wire_name(name) == wire
        model, results = contents(answer("", ToolCallEvent("a", name, {})), result("a", name=name))
        assert model["parts"][0]["functionCall"]["name"] == wire
        assert results["parts"][0]["functionResponse"]["name"] == wire

    @pytest.mark.parametrize(
        ("schema", "parameters"),
        [
            ({"type": "object", "properties": {}}, None),
            ({"type": "object", "properties": {}, "additionalProperties": False}, None),
            ({}, None),
            ({"properties": {"x": {}}}, {"type": "object", "properties": {"x": {}}}),
            ({"type": "object", "additionalProperties": True}, {"type": "object", "additionalProperties": True}),
        ],
    )
    def test_a_tool_without_parameters_has_none(self, schema: dict[str, Any], parameters: Any) -> None:
        body = build_request(GoogleConfig.read({}), [ASK], [ToolDefinition("now", "Time.", schema)], CallOptions())
        (declaration,) = body["tools"][0]["functionDeclarations"]
        assert declaration.get("parametersJsonSchema") == parameters
        assert declaration["name"] == "now"


CALL: Any = {"functionCall": {"name": "query", "args": {}}}


class TestSignatures:
    def signed(self, model: str = "gemini") -> Message:
        """As the assembler notes it: text, signed text, a signed call, an unsigned one, an empty signed end."""
        log = PartsLog(model)
        log.text(6, None)
        log.thought("hm", "s0")
        log.text(5, "s1")
        calls = [ToolCallEvent(id, "query", {}, metadata=log.call(sign)) for id, sign in (("a", "s2"), ("b", None))]
        log.text(0, "s3")
        return answer("I see. Wait.", *calls, **log.metadata())

    def parts(self, message: Message, **options: Any) -> Any:
        content = replace(message, content=message.content[:11])
        return contents(content, result("a"), result("b"), **options)[0]["parts"]

    def test_each_returns_on_its_part(self) -> None:
        assert self.parts(self.signed()) == [
            {"text": "I see."},
            {"thought": True, "text": "hm", "thoughtSignature": "s0"},
            {"text": " Wait", "thoughtSignature": "s1"},
            {**CALL, "thoughtSignature": "s2"},
            CALL,
            {"text": "", "thoughtSignature": "s3"},
        ]

    def test_another_models_stay_at_home(self) -> None:
        assert self.parts(self.signed("another")) == [{"text": "I see. Wait"}, CALL, CALL]

    def test_without_them_the_first_call_says_so(self) -> None:
        assert self.parts(self.signed(), signed=False) == [
            {"text": "I see. Wait"},
            {**CALL, "thoughtSignature": PLACEHOLDER},
            CALL,
        ]

    @pytest.mark.parametrize(
        "parts",
        [
            None,
            7,
            "text",
            [],
            ["text"],
            [{"text": 11}],
            [{"text": 11}, {"call": 0}],
            [{"text": 11}, {"call": 0}, {"call": 1}, {"call": 2}],
            [{"text": 10}, {"call": 0}, {"call": 1}],
            [{"text": 12}, {"call": 0}, {"call": 1}],
            [{"text": 14}, {"text": -3}, {"call": 0}, {"call": 1}],
            [{"text": "I see. Wait"}, {"call": 0}, {"call": 1}],
            [{"thought": True, "text": "hm"}, {"text": 11}, {"call": 0}, {"call": 1}],
        ],
    )
    def test_an_order_that_does_not_fit_is_not_used(self, parts: Any) -> None:
        message = replace(self.signed(), metadata={"model": "gemini", "parts": parts})
        assert self.parts(message) == [
            {"text": "I see. Wait"},
            {**CALL, "thoughtSignature": "s2"},
            CALL,
        ]
