"""docs/providers.md tells the truth about the providers: names, keys, defaults, variables, and where its links lead."""

from __future__ import annotations

import importlib
import re
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import pytest

import gm_chat.providers
from gm_chat.host.providers import EXTRAS
from gm_chat.providers.configuration import HOST_KEYS, ProviderConfig
from gm_chat.wiring.provider import call_limits

ROOT = Path(__file__).parents[2]
CODE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
TEXT = CODE.sub("", (ROOT / "docs" / "providers.md").read_text(encoding="utf-8"))
CONFIGS = {"openai": "OpenAIConfig", "anthropic": "AnthropicConfig", "google": "GoogleConfig", "ollama": "OllamaConfig"}


def rows_of(heading: str, *, table: int = 0) -> list[list[str]]:
    """The cells of a table under a heading, its own head first."""
    section = re.split(r"^#+ ", TEXT.partition(f"# {heading}\n")[2], flags=re.MULTILINE)[0]
    tables = re.findall(r"(?:^\|.*\n)+", section, re.MULTILINE)
    return [_split(line) for line in tables[table].splitlines() if not set(line) <= set("|-")]


def _split(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().removeprefix("|").removesuffix("|").split("|")]


def config_of(provider: str) -> type[ProviderConfig]:
    module = f"gm_chat_provider_{provider}"
    pytest.importorskip(module)
    found: type[ProviderConfig] = getattr(importlib.import_module(f"{module}.config"), CONFIGS[provider])
    return found


def test_every_provider_is_listed() -> None:
    head, *rows = rows_of("What ships")
    assert head[0] == "name"
    assert [row[0].strip("`") for row in rows] == list(CONFIGS)
    for name, extra, classes, *_ in rows:
        assert extra == f"`gm-chat[{EXTRAS[name.strip('`')]}]`"
        assert set(re.findall(r"`(\w+)`", classes)) <= set(gm_chat.providers.__all__)


@pytest.mark.parametrize("provider", CONFIGS)
def test_every_key_is_listed_with_its_default(provider: str) -> None:
    config = config_of(provider)
    head, *rows = rows_of("Configuration keys")
    column = head.index(f"`{provider}`")
    listed = {row[0].strip("`"): row[column] for row in rows if row[column]}
    defaults: dict[str, Any] = {item.name: item.default for item in fields(config)}
    assert listed.keys() == defaults.keys() | HOST_KEYS
    defaults |= {key: value for key, value in call_limits({}).items() if key in HOST_KEYS}
    for key, cell in listed.items():
        shown, _, remark = cell.partition(", ")
        default = defaults[key]
        assert default is not MISSING
        assert shown == ("-" if default is None else f"`{default:g}`" if isinstance(default, float) else f"`{default}`")
        if key == "temperature":
            assert remark == f"0 to {config.max_temperature:g}"


@pytest.mark.parametrize("provider", CONFIGS)
def test_every_variable_is_the_one_that_the_sdk_reads(provider: str) -> None:
    head, *rows = rows_of("Configuration keys", table=1)
    named = re.findall(r"`([A-Z_]{4,})`", " ".join(row[head.index(f"`{provider}`")] for row in rows))
    package = {"google": "google.genai"}.get(provider, provider)
    sdk = pytest.importorskip(package)
    assert named
    unread = {*named}
    for path in Path(sdk.__path__[0]).rglob("*client*.py"):
        source = path.read_text(encoding="utf-8")
        unread -= {name for name in unread if name in source}
    assert not unread


def test_the_modules_of_the_kit_exist() -> None:
    _, *rows = rows_of("Writing a provider")
    names = {row[0].strip("`") for row in rows}
    assert names >= {"configuration", "history", "adapter"}
    for name in names:
        module = importlib.import_module(f"gm_chat.providers.{name}")
        assert module.__all__


def test_links_lead_somewhere() -> None:
    headings = re.findall(r"^#+ (.*)$", TEXT, re.MULTILINE)
    anchors = {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}
    for target in re.findall(r"\]\(([^)]+)\)", TEXT):
        path, _, anchor = target.partition("#")
        assert anchor in anchors if not path else (ROOT / "docs" / path).exists(), target
