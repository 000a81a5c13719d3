"""The signals exist under their specified names and reach their receivers."""

import pytest

from gm_chat import signals


@pytest.mark.parametrize("name", signals.__all__)
def test_a_receiver_hears_its_signal_and_only_that(name: str) -> None:
    heard: list[tuple[str, dict[str, object]]] = []
    receivers = {}
    for other in signals.__all__:

        def receiver(other: str = other, **arguments: object) -> None:
            heard.append((other, arguments))

        receivers[other] = receiver
        getattr(signals, other).connect(receiver)
    getattr(signals, name).send_robust(sender=None, user="ada")
    assert [(other, arguments["user"]) for other, arguments in heard] == [(name, "ada")]
    for other, receiver in receivers.items():
        assert getattr(signals, other).disconnect(receiver)


def test_there_are_four_of_turns_and_one_of_persons() -> None:
    assert set(signals.__all__) == {
        "chat_forgotten",
        "chat_message_received",
        "chat_tool_called",
        "chat_mutation_executed",
        "chat_error",
    }
