"""gm-chat's declarations. Everybody may read parts, under the names of the reference's project."""

from __future__ import annotations

from gm_chat.managers import ModelManager
from turnbench.catalog import models


class Material(ModelManager):
    """What parts are made of."""

    chat_exposed = True
    model = models.Material
    fields = ("id", "name", "density")
    public = True


class Part(ModelManager):
    """Designed or purchased components."""

    chat_exposed = True
    model = models.Part
    fields = ("id", "number", "name", "price", "material")
    public = True
