"""The contract for providers: the plugin of docs/providers.md passes it, and broken adapters do not."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from gm_chat.providers.base import ProviderError, ProviderIncompleteError
from gm_chat.providers.pool import ClientPool
from gm_chat.testing.wire_cases import WireCase

if TYPE_CHECKING:
    from types import ModuleType

pytest.importorskip("httpx")

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```python\n# (\S+\.py)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the example, as a reader of the page would create them."""
    folder = tmp_path_factory.mktemp("example")
    blocks = BLOCK.findall((ROOT / "docs" / "providers.md").read_text(encoding="utf-8"))
    for name, code in blocks:
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(code, encoding="utf-8")
    assert {name for name, _ in blocks} >= {"acme_chat/plugin.py", "test_acme.py"}
    return folder


def test_the_example_of_the_documentation_passes(example: Path) -> None:
    """In a process of its own, without this project's pytest configuration."""
    options = ["-q", "-W", "error", "-p", "no:cacheprovider", "-o", "asyncio_default_fixture_loop_scope=function"]
    command = [sys.executable, "-m", "pytest", *options, "--rootdir", ".", "test_acme.py"]
    environment = {key: value for key, value in os.environ.items() if key != "DJANGO_SETTINGS_MODULE"}
    result = subprocess.run(command, cwd=example, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    assert re.search(r"\b[3-9]\d passed", result.stdout), result.stdout


def test_the_entry_point_of_the_example_imports_no_sdk(example: Path) -> None:
    code = "import sys, acme_chat.plugin as p; print([s.name for s in p.gm_chat_providers()], 'httpx' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], cwd=example, capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "['acme'] False"


@pytest.fixture
def acme(example: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The example's test module, fresh: the tests below break what it tests."""
    monkeypatch.syspath_prepend(str(example))
    for name in [name for name in sys.modules if name.split(".")[0] in ("acme_chat", "test_acme")]:
        monkeypatch.delitem(sys.modules, name)
    import test_acme  # written by the fixture

    return test_acme


class Unbroken:
    """What the broken adapters wrap: it forwards the events of the example's provider."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    async def complete(self, messages: Any, tools: Any) -> Any:
        async for event in self.inner.complete(messages, tools):
            yield event


class ForgetsTheEnd(Unbroken):
    async def complete(self, messages: Any, tools: Any) -> Any:
        from gm_chat.providers.base import DoneEvent, ProviderIncompleteError

        try:
            async for event in self.inner.complete(messages, tools):
                yield event
        except ProviderIncompleteError:
            yield DoneEvent()


class RaisesItsOwnErrors(Unbroken):
    async def complete(self, messages: Any, tools: Any) -> Any:
        try:
            async for event in self.inner.complete(messages, tools):
                yield event
        except Exception as error:
            raise RuntimeError("vendor") from error


class HoldsTheConnection(Unbroken):
    """Leaves the inner stream open when it is left itself, as `async for` without `aclosing` does."""

    kept: ClassVar[list[Any]] = []

    async def complete(self, messages: Any, tools: Any) -> Any:
        inner = self.inner.complete(messages, tools)
        self.kept.append(inner)
        async for event in inner:
            yield event


class ReportsNoErrors(Unbroken):
    async def complete(self, messages: Any, tools: Any) -> Any:
        from gm_chat.providers.base import DoneEvent, ProviderError

        try:
            async for event in self.inner.complete(messages, tools):
                yield event
        except ProviderError:
            yield DoneEvent(finish_reason="stop")


class SendsEmptyTools(Unbroken):
    async def complete(self, messages: Any, tools: Any) -> Any:
        from gm_chat.providers.base import ToolDefinition

        async for event in self.inner.complete(messages, tools or [ToolDefinition("none", "", {})]):
            yield event


class LosesTheUsage(Unbroken):
    async def complete(self, messages: Any, tools: Any) -> Any:
        from gm_chat.providers.base import DoneEvent

        async for event in self.inner.complete(messages, tools):
            yield DoneEvent(finish_reason=event.finish_reason) if isinstance(event, DoneEvent) else event


BROKEN = [
    (ForgetsTheEnd, "test_a_stream_without_its_end_is_incomplete", ("tool_call",)),
    (ForgetsTheEnd, "test_a_broken_connection_is_incomplete", ()),
    (ForgetsTheEnd, "test_a_page_is_incomplete", ()),
    (RaisesItsOwnErrors, "test_no_server_is_an_error", ()),
    (RaisesItsOwnErrors, "test_an_error_page_is_an_error", ()),
    (HoldsTheConnection, "test_leaving_closes_the_connection", ()),
    (SendsEmptyTools, "test_without_tools_there_is_no_tools_key", ()),
    (LosesTheUsage, "test_a_recording_gives_its_meaning", ("text",)),
]


@pytest.mark.parametrize(("adapter", "test", "args"), BROKEN, ids=lambda value: getattr(value, "__name__", str(value)))
async def test_a_broken_adapter_does_not_pass(acme: ModuleType, adapter: Any, test: str, args: tuple[str, ...]) -> None:
    class Contract(acme.TestAcme):  # type: ignore[name-defined, misc]  # a class that a fixture wrote
        broken = False

        def build(self, url: str, **config: Any) -> Any:
            inner = super().build(url, **config)
            return adapter(inner) if self.broken else inner

    await getattr(Contract(), test)(*args)
    Contract.broken = True
    start = time.monotonic()
    with pytest.raises((AssertionError, RuntimeError, TimeoutError, pytest.fail.Exception)):
        await getattr(Contract(), test)(*args)
    assert time.monotonic() - start < 5
    await release()


async def release() -> None:
    for kept in HoldsTheConnection.kept:
        await kept.aclose()
    HoldsTheConnection.kept.clear()
    await asyncio.sleep(0)


async def test_an_adapter_that_takes_each_read_for_whole_lines_does_not_pass(acme: ModuleType) -> None:
    import httpx
    from acme_chat import wire  # written by the fixture

    async def lines(base_url: str, body: Any, seconds: float) -> Any:
        client = await wire.POOL.get(seconds, lambda: httpx.AsyncClient(timeout=seconds))
        async with client.stream("POST", f"{base_url}/stream", json=body) as response:
            async for piece in response.aiter_bytes():
                for line in piece.decode(errors="replace").splitlines():
                    with suppress(ValueError):
                        yield json.loads(line)

    contract = acme.TestAcme()
    await contract.test_bytes_may_be_cut_anywhere("text", 3)
    wire.lines = lines
    await contract.test_a_recording_gives_its_meaning("text")
    with pytest.raises((AssertionError, ProviderIncompleteError)):
        await contract.test_bytes_may_be_cut_anywhere("text", 2)


class NewClients(ClientPool[Any]):
    """Makes a client for each call, and closes them with the loop only."""

    async def get(self, key: Any, make: Any) -> Any:
        return await super().get(object(), make)


def test_an_adapter_that_makes_a_client_for_each_call_leaks(acme: ModuleType) -> None:
    import httpx
    from acme_chat import wire  # written by the fixture

    class Contract(acme.TestAcme):  # type: ignore[name-defined, misc]  # a class that a fixture wrote
        turns = 24

    Contract().test_turns_leave_nothing_behind()
    wire.POOL = NewClients(httpx.AsyncClient.aclose)
    with pytest.raises(AssertionError, match="clients"):
        Contract().test_turns_leave_nothing_behind()


CASE = WireCase(
    name="no-end", body=b'{"text": "Hi"}\n', content_type="application/x-ndjson", text="Hi", failure=(ProviderError,)
)


@pytest.mark.parametrize("changes", [{"text": "Ho"}, {"failure": (ProviderIncompleteError,), "retry_after": (1, 2)}])
async def test_a_wire_case_says_what_must_come_out(
    acme: ModuleType, caplog: pytest.LogCaptureFixture, changes: dict[str, Any]
) -> None:
    right = replace(CASE, failure=(ProviderIncompleteError,))
    await acme.TestAcme().test_a_wire_case(right, caplog)
    with pytest.raises(AssertionError):
        await acme.TestAcme().test_a_wire_case(replace(right, **changes), caplog)
    with pytest.raises(AssertionError):  # another kind of error than the exact one
        await acme.TestAcme().test_a_wire_case(CASE, caplog)


async def test_a_wire_case_without_its_error_does_not_pass(acme: ModuleType, caplog: pytest.LogCaptureFixture) -> None:
    class Contract(acme.TestAcme):  # type: ignore[name-defined, misc]  # a class that a fixture wrote
        def build(self, url: str, **config: Any) -> Any:
            return ReportsNoErrors(super().build(url, **config))

    with pytest.raises(pytest.fail.Exception, match="ended normally"):
        await Contract().test_a_wire_case(CASE, caplog)


CALL = b'{"call": {"id": "c1", "name": "query", "arguments": "{}"}}\n'


@pytest.mark.parametrize(
    ("returns", "passes"),
    [
        ([{"id": "c1", "name": "query"}], True),
        ([{"calls": [{"name": "query"}]}], True),
        ([["query"]], False),
        ([{"id": "c1", "signature": "x"}], False),
    ],
)
async def test_a_wire_case_says_what_must_go_back(
    acme: ModuleType, caplog: pytest.LogCaptureFixture, returns: Any, passes: bool
) -> None:
    case = WireCase(
        name="signature-returns",
        body=CALL + acme.END,
        calls=[("query", {})],
        finish="tool_calls",
        usage=None,
        returns=returns,
    )
    test = acme.TestAcme().test_a_wire_case(case, caplog)
    if passes:
        await test
    else:
        with pytest.raises(AssertionError, match="is not in"):
            await test


async def test_a_wire_case_says_what_the_operator_must_be_told(
    acme: ModuleType, caplog: pytest.LogCaptureFixture
) -> None:
    case = WireCase(name="prompt-cut", body=acme.END, usage=None, warning="cut")
    with pytest.raises(AssertionError, match=r"\[\]"):
        await acme.TestAcme().test_a_wire_case(case, caplog)
    logging.getLogger("acme").warning("the prompt was cut")
    await acme.TestAcme().test_a_wire_case(case, caplog)
    with pytest.raises(AssertionError, match="the prompt was cut"):
        await acme.TestAcme().test_a_wire_case(replace(case, warning=None), caplog)
