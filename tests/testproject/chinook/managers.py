"""All 11 tables of Chinook, for anybody. Not a ``chat_managers`` module: only the tests that want it see it."""

from __future__ import annotations

from typing import Final

from gm_chat.managers import expose
from testproject.chinook import models

MANAGERS: Final = tuple(
    expose(model, public=True)
    for model in (
        models.Artist,
        models.Album,
        models.Genre,
        models.MediaType,
        models.Track,
        models.Playlist,
        models.PlaylistTrack,
        models.Employee,
        models.Customer,
        models.Invoice,
        models.InvoiceLine,
    )
)
