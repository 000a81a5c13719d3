"""What the audit of planned turns tells: what is on the list, in its form, and nothing else."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gm_chat import audit, doors
from gm_chat.audit import AuditPolicy, emit_planned_audit_event, planned_audit_lineage_id
from gm_chat.engine.audit import AuditTrail
from gm_chat.planned.evidence import EvidenceKind, canonical_call_identity
from gm_chat.planned_audit import PLANNED_FIELDS, planned_audit_event
from gm_chat.settings import REQUIRED_ROLES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SECRET = "sk-1234567890abcdef"
CATEGORIES = (
    "plan",
    "task_progress",
    "route",
    "candidate",
    "tool_call",
    "tool_result",
    "budget",
    "latency",
    "usage",
    "evidence",
    "coverage",
    "terminal",
)
COUNTS = {"schema": 0, "path": 1, "query": 2, "calculation": 0}
HASH = hashlib.sha256(b"t1").hexdigest()
# Every field there is with a value that may be told, and many that may not be.
EVERYTHING: Mapping[str, Any] = {
    **dict.fromkeys(("plan_id", "task_id", "root_task_id", "parent_task_id"), "t1"),
    "role": "planner",
    "route": "selected",
    "escalated": False,
    "trust_group_valid": True,
    "duplicate": True,
    "task_count": 1,
    "match_sources": ["exact_name", "schema_field"],
    "candidate_count": 1,
    "local_passes": 1,
    "call_hash": HASH,
    "progress": "evidence_added",
    "stage": "evidence",
    "stage_latency_ms": 3,
    "task_latency_ms": 4,
    "input_tokens": 5,
    "output_tokens": 6,
    "reported_cost": 0.25,
    "evidence_counts": COUNTS,
    "coverage": {"resolved": 1, "total": 2},
    "terminal_reason": "budget_exhausted",
    **dict.fromkeys(("subtree_rounds_used", "subtree_rounds_remaining"), 7),
    **dict.fromkeys(("global_rounds_used", "global_rounds_remaining"), 8),
    **dict.fromkeys(("profile", "trust_group", "manager", "result", "plan", "error", "args", "query", "name"), SECRET),
}


class TestEvent:
    def test_the_categories_are_the_specification_s(self) -> None:
        assert tuple(PLANNED_FIELDS) == CATEGORIES

    @pytest.mark.parametrize("category", CATEGORIES)
    def test_a_category_tells_all_of_its_fields_and_no_other(self, category: str) -> None:
        event = planned_audit_event(category, EVERYTHING)
        assert event is not None
        assert event.pop("event_type") == f"planned_{category}"
        assert tuple(event) == PLANNED_FIELDS[category]
        assert SECRET not in json.dumps(event)

    def test_ids_are_told_as_hashes(self) -> None:
        assert planned_audit_event("plan", {"plan_id": "t1", "task_count": 2}) == {
            "event_type": "planned_plan",
            "plan_id": HASH,
            "task_count": 2,
        }

    def test_a_call_is_told_as_its_hash(self) -> None:
        identity = canonical_call_identity("query", {"manager": SECRET})
        event = planned_audit_event("tool_call", {"canonical_call_identity": identity, "tool_name": "query"})
        assert event == {
            "event_type": "planned_tool_call",
            "call_hash": hashlib.sha256(identity.encode()).hexdigest(),
        }

    @pytest.mark.parametrize("category", ["planned_plan", "other", "", None, 1])
    def test_there_are_no_other_categories(self, category: Any) -> None:
        assert planned_audit_event(category, EVERYTHING) is None

    @pytest.mark.parametrize("payload", [None, [], "text", 5])
    def test_a_payload_is_a_mapping(self, payload: Any) -> None:
        assert planned_audit_event("plan", payload) is None

    @pytest.mark.parametrize(
        ("category", "field", "values"),
        [
            ("plan", "plan_id", ["", "x" * 129, 1, None, ["t1"]]),
            ("plan", "role", ["boss", "", None, 1, ["planner"]]),
            ("plan", "trust_group_valid", [1, "yes", None]),
            ("plan", "task_count", [-1, True, 1.0, "1", None]),
            ("route", "route", ["strong_local", None]),
            ("candidate", "match_sources", [["exact_name", SECRET], ("exact_name",), "exact_name", [1]]),
            ("tool_call", "call_hash", ["x" * 64, HASH[:-1], HASH.upper(), None]),
            ("evidence", "progress", [SECRET, None]),
            ("evidence", "evidence_counts", [{**COUNTS, "x": 1}, {"query": 1}, {**COUNTS, "query": -1}, 3]),
            ("coverage", "coverage", [{"resolved": 1}, {"resolved": 1, "total": "2"}, None]),
            ("terminal", "terminal_reason", ["rate_limited", SECRET, None]),
            ("usage", "reported_cost", [-1, float("nan"), float("inf"), SECRET, True]),
            ("latency", "stage", ["database", None]),
        ],
    )
    def test_a_value_of_another_form_is_left_out(self, category: str, field: str, values: list[Any]) -> None:
        for value in values:
            assert planned_audit_event(category, {field: value}) == {"event_type": f"planned_{category}"}

    @given(
        st.sampled_from(CATEGORIES),
        st.dictionaries(
            st.sampled_from([*EVERYTHING, "canonical_call_identity"]),
            st.none()
            | st.text()
            | st.integers()
            | st.floats()
            | st.lists(st.text())
            | st.dictionaries(st.text(), st.text()),
        ),
    )
    def test_any_payload_gives_plain_fields_of_the_list(self, category: str, payload: dict[str, Any]) -> None:
        event = planned_audit_event(category, payload)
        assert event is not None
        assert set(event) - {"event_type"} <= {*PLANNED_FIELDS[category], "call_hash"}
        assert json.loads(json.dumps(event, allow_nan=False)) == event

    def test_its_words_are_those_of_the_planned_modules(self) -> None:
        for role in REQUIRED_ROLES:
            assert planned_audit_event("usage", {"role": role}) == {"event_type": "planned_usage", "role": role}
        assert set(get_args(EvidenceKind)) == set(COUNTS)


class TestLineage:
    def test_the_same_id_gives_the_same_hash(self) -> None:
        assert planned_audit_lineage_id("t1") == HASH
        assert planned_audit_lineage_id("x" * 128) == hashlib.sha256(b"x" * 128).hexdigest()
        assert planned_audit_lineage_id("\ud800") is not None

    @pytest.mark.parametrize("value", [None, "", 1, b"t1", "x" * 129, ["t1"], {"a": 1}])
    def test_what_is_no_id_has_none(self, value: object) -> None:
        assert planned_audit_lineage_id(value) is None


class Sink:
    name = "sink"
    required = True

    def __init__(self) -> None:
        self.events: list[Mapping[str, Any]] = []

    async def start(self) -> None: ...

    async def emit(self, event: Mapping[str, Any]) -> None:
        self.events.append(event)

    async def aclose(self) -> None: ...


class Current:
    """The least that the door needs of a Runtime."""

    settings = None

    def __init__(self, trail: AuditTrail) -> None:
        self.audit = trail

    def provider_spec(self, name_or_path: str) -> Any:
        raise NotImplementedError


@pytest.fixture
def current(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[AuditTrail, Sink]]:
    sink = Sink()
    trail = AuditTrail([sink], AuditPolicy(**request.param))
    monkeypatch.setattr(doors, "_source", lambda: Current(trail))
    yield trail, sink
    trail.close()


class TestEmit:
    def test_a_sink_of_one_s_own_gets_the_event(self) -> None:
        events: list[dict[str, Any]] = []
        emit_planned_audit_event("terminal", EVERYTHING, sink=events.append)
        emit_planned_audit_event("other", EVERYTHING, sink=events.append)
        assert [event["event_type"] for event in events] == ["planned_terminal"]

    @pytest.mark.parametrize("current", [{"level": "all", "redact_fields": ("coverage",)}], indirect=True)
    def test_the_chat_s_sinks_get_it_redacted(self, current: tuple[AuditTrail, Sink]) -> None:
        trail, sink = current
        emit_planned_audit_event("usage", {"input_tokens": 5})
        emit_planned_audit_event("coverage", EVERYTHING)
        trail.close()
        assert sink.events == [
            {"event_type": "planned_usage", "input_tokens": 5},
            {
                "event_type": "planned_coverage",
                "plan_id": HASH,
                "coverage": audit.REDACTED,
                "terminal_reason": "budget_exhausted",
            },
        ]

    @pytest.mark.parametrize("current", [{"level": "messages"}, {"level": "off"}], indirect=True)
    def test_below_the_level_all_they_get_nothing(self, current: tuple[AuditTrail, Sink]) -> None:
        trail, sink = current
        emit_planned_audit_event("usage", {"input_tokens": 5})
        trail.close()
        assert sink.events == []
