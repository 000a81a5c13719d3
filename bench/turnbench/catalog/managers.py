"""The reference's declarations. Only its own project has GeneralManager, which imports this module by its name.

The names are single words: its query tool cannot read a manager of two, such as PartManager.
"""

from __future__ import annotations

from general_manager.interface import ExistingModelInterface
from general_manager.manager import GeneralManager

from turnbench.catalog import models


class Material(GeneralManager):
    """What parts are made of."""

    chat_exposed = True

    class Interface(ExistingModelInterface):
        model = models.Material


class Part(GeneralManager):
    """Designed or purchased components."""

    chat_exposed = True

    class Interface(ExistingModelInterface):
        model = models.Part
