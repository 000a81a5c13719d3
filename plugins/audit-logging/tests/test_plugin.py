import json
import logging
from typing import Any, ClassVar

import pytest
from gm_chat_audit_logging import plugin
from gm_chat_audit_logging.plugin import Options

from gm_chat.testing import make_host
from gm_chat.testing.hook_contracts import AuditSinksContract


class TestAuditSinks(AuditSinksContract):
    plugin = plugin
    name = "audit_logging"
    options: ClassVar[dict[str, str]] = {"logger": "acme.audit", "level": "WARNING"}

    def test_each_event_is_one_line_of_json(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.INFO, "acme.audit")
        self.run(self.host().audit_sinks[0], self.events)
        lines = [record.getMessage() for record in caplog.records if record.name == "acme.audit"]
        assert [json.loads(line) for line in lines] == list(self.events)
        assert [record.levelname for record in caplog.records] == ["WARNING"] * len(self.events)
        assert all(line.isascii() and len(line.splitlines()) == 1 for line in lines)
        assert next(iter(json.loads(lines[0]))) == "event_type"

    def test_a_logger_that_does_not_listen_costs_nothing(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.ERROR, "acme.audit")
        self.run(self.host().audit_sinks[0], [{"event_type": "user_message", "content": object()}])
        assert caplog.records == []


def test_the_defaults() -> None:
    assert Options() == Options(logger="gm_chat.audit_log", level="INFO")
    assert make_host(audit_logging=plugin).audit_sinks[0].name == "audit_logging"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"level": "LOUD"}, "'level' must be one of DEBUG, INFO"),
        ({"level": 20}, "'level' must be one of"),
        ({"logger": "  "}, "'logger' must be the name"),
        ({"logger": 5}, "'logger' must be the name"),
        ({"database": "yes"}, "'database' must be True or False"),
        ({"lvel": "INFO"}, "unknown key 'lvel'. Did you mean 'level'?"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    host = make_host({"audit_logging": plugin}, options={"audit_logging": options}, strict=False)
    assert host.audit_sinks == ()
    assert [record.state for record in host.plugins] == ["refused"]
    assert message in host.problems[0].message
