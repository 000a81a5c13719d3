"""The one place that decides what a write's answer means for the turn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

__all__ = ["NOT_CONFIRMED", "needs_confirmation"]

NOT_CONFIRMED: Final[Mapping[str, Any]] = {
    "error": {
        "code": "confirmation_required_transport",
        "message": "Not executed: the change needs the user's approval, which this connection cannot ask for.",
    }
}
"""What history records for a write that could not be put to the user, so that the model does not think it was done."""


def needs_confirmation(result: Any) -> bool:
    """Whether a write tool did nothing but ask for the user's approval of ``mutation`` with ``input``."""
    return isinstance(result, Mapping) and result.get("status") == "confirmation_required"
