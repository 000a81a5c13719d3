"""Declares the managers before GeneralManager builds its schema."""

from __future__ import annotations

from importlib import import_module

from django.apps import AppConfig


class Music(AppConfig):
    name = "querybench.gm_project"

    def ready(self) -> None:
        import_module("querybench.gm_project.managers")
