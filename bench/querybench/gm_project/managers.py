"""A manager for each model of the page, for anybody to read."""

from __future__ import annotations

from typing import ClassVar

from general_manager import GeneralManager
from general_manager.interface import ExistingModelInterface
from general_manager.permission import ManagerBasedPermission

from querybench.store import models


class Artist(GeneralManager):
    class Interface(ExistingModelInterface):
        model = models.Artist

    class Permission(ManagerBasedPermission):
        __read__: ClassVar = ["public"]


class Album(GeneralManager):
    class Interface(ExistingModelInterface):
        model = models.Album

    class Permission(ManagerBasedPermission):
        __read__: ClassVar = ["public"]


class Track(GeneralManager):
    class Interface(ExistingModelInterface):
        model = models.Track

    class Permission(ManagerBasedPermission):
        __read__: ClassVar = ["public"]
