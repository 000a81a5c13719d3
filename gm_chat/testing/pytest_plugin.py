"""Fixtures for the tests of plugins. pytest loads this module wherever gm-chat is installed, so it imports nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from _pytest.terminal import TerminalReporter

    from gm_chat.host import PluginHost

# Gives the ready tests the explanations that pytest adds to a failing `assert`; imports nothing.
pytest.register_assert_rewrite("gm_chat.testing.hook_contracts", "gm_chat.testing.provider_contract")

__all__ = ["inline_database", "make_host"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option of :mod:`gm_chat.testing.wire_table`."""
    parser.getgroup("gm_chat").addoption(
        "--wire-table", action="store_true", help="end with a table: wire cases, providers and results"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker of the provider contract's long tests."""
    config.addinivalue_line(
        "markers", "exhaustive: takes many seconds; leave out with -m 'not exhaustive' where a plugin's own run has it"
    )


def pytest_terminal_summary(terminalreporter: TerminalReporter, config: pytest.Config) -> None:
    """Print the table."""
    if not config.getoption("--wire-table"):
        return
    from gm_chat.testing.wire_table import wire_table  # lazy: see the module's docstring

    outcomes = [
        (report.nodeid, outcome)
        for outcome in ("passed", "failed", "error", "skipped")
        for report in terminalreporter.getreports(outcome)
    ]
    terminalreporter.section("wire cases")
    for line in wire_table(outcomes) or ["no wire case was run"]:
        terminalreporter.write_line(line)


@pytest.fixture
def make_host() -> Callable[..., PluginHost]:
    """See :func:`gm_chat.testing.make_host`."""
    from gm_chat.testing.hosts import make_host as build  # lazy: see the module's docstring

    return build


@pytest.fixture
def inline_database() -> Iterator[None]:
    """Let the chat's database work see the test's own transaction (``django_db`` without ``transaction=True``)."""
    from gm_chat.persistence import threads  # lazy: see the module's docstring

    with threads.inline_database():
        yield
