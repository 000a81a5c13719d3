"""docs/settings.md tells the truth: every key, default, variable and check id, and no other."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import gm_chat
from gm_chat.settings import (
    REQUIRED_ROLES,
    AuditSettings,
    ChatSettings,
    PlannedSettings,
    PriceSettings,
    ProfileSettings,
    RateLimitSettings,
    plain,
)
from gm_chat.settings.environment import unknown_variables
from gm_chat.settings.model import Section

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "settings.md").read_text()
SECTIONS: dict[str, tuple[type[Section], str]] = {
    "Top level": (ChatSettings, "GM_CHAT_"),
    "`rate_limit`": (RateLimitSettings, "GM_CHAT_RATE_LIMIT__"),
    "`audit`": (AuditSettings, "GM_CHAT_AUDIT__"),
    "`prices`": (PriceSettings, "GM_CHAT_PRICES__<NAME>__"),
    "`planned`": (PlannedSettings, "GM_CHAT_PLANNED__"),
    "`provider_profiles`": (ProfileSettings, "GM_CHAT_PROVIDER_PROFILES__<NAME>__"),
}


def rows(heading: str) -> Iterator[list[str]]:
    """The body rows of the first table below a heading."""
    part = re.split(r"^## ", TEXT, flags=re.MULTILINE)
    body = next(item for item in part if item.startswith(f"{heading}\n"))
    table = [line for line in body.splitlines() if line.startswith("|")]
    for line in table[2:]:
        yield [cell.strip().strip("`") for cell in line.strip("|").split("|")]


@pytest.mark.parametrize("heading", SECTIONS)
def test_the_tables_match_the_model(heading: str) -> None:
    section, prefix = SECTIONS[heading]
    documented = list(rows(heading))
    assert [key for key, *_ in documented] == list(section.model_fields)
    for key, default, variable, meaning in documented:
        field = section.model_fields[key]
        assert variable == f"{prefix}{key.upper()}"
        assert unknown_variables([variable.replace("<NAME>", "X")]) == []
        assert meaning
        if field.is_required():
            assert default == "required"
        elif issubclass(type(value := field.get_default(call_default_factory=True)), Section):
            assert default == "{}"
        else:
            assert ast.literal_eval(default) == plain(value)


def test_the_roles_are_listed() -> None:
    assert ", ".join(f"`{role}`" for role in REQUIRED_ROLES) in TEXT


def test_every_check_id_is_explained_and_every_explained_one_exists() -> None:
    documented = {row[0] for row in rows("What `manage.py check` reports")}
    package = Path(gm_chat.__file__).parent
    files = [*package.glob("checks/*.py"), *package.glob("providers/*.py"), *ROOT.glob("plugins/provider-*/src/*/*.py")]
    source = "".join(file.read_text() for file in files)
    used = set(re.findall(r"gm_chat\.[EW]\d+", source)) | {
        f"gm_chat.{code}" for code in re.findall(r'"([EW]\d+)"', source)
    }
    assert documented == used


def test_its_links_lead_somewhere() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", TEXT)
    assert [link for link in links if not (ROOT / "docs" / link).exists()] == []
