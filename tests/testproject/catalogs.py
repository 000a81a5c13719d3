"""Catalogs that settings can name by their dotted paths."""

from __future__ import annotations

from typing import Any


def shop() -> dict[str, Any]:
    """What the shop's people call parts and materials."""
    return {
        "PartManager": {
            "domain": "manufacturing",
            "aliases": ["component", "spare-part"],
            "use_when": "The question concerns designed or purchased components.",
            "distinguish_from": ["MaterialManager"],
        },
        "MaterialManager": {
            "domain": "manufacturing materials",
            "aliases": ["substance", "alloy"],
            "use_when": "The question concerns what something is made of.",
            "distinguish_from": ["PartManager"],
        },
    }
