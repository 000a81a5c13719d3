"""Empty: both chats bring their own routes when Django starts."""

from __future__ import annotations

from typing import Any

urlpatterns: list[Any] = []
