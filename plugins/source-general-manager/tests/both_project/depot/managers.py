"""Boxes in bays."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from general_manager import DatabaseInterface, GeneralManager
from general_manager.permission import AdditiveManagerPermission


class Bay(GeneralManager):
    """Where boxes stand."""

    chat_exposed = True

    class Interface(DatabaseInterface):
        name = models.CharField(max_length=20, unique=True)


class Box(GeneralManager):
    """What is stored."""

    chat_exposed = True

    class Interface(DatabaseInterface):
        label = models.CharField(max_length=20, unique=True)
        bay = models.ForeignKey("depot.Bay", on_delete=models.CASCADE, related_name="boxes")

    class Permission(AdditiveManagerPermission):
        __read__: ClassVar[list[str]] = ["public"]
        __create__: ClassVar[list[str]] = ["isAuthenticated"]
