"""What the checks say of catalogs: a mistake in the setting's is an error, one in a plugin's a warning."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.core import checks
from django.db import Error

from gm_chat.host.problems import Failed, one_line
from gm_chat.settings import ChatConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gm_chat.wiring.catalogs import Catalogs

__all__ = ["catalog_findings"]


def catalog_findings(catalogs: Catalogs | Failed) -> Iterator[checks.CheckMessage]:
    """Only what is wrong with the setting's catalog; plugins' problems are told with their other ones."""
    if not isinstance(catalogs, Failed) or not isinstance(catalogs.error, ChatConfigurationError):
        return  # what else can fail are the sources, of which E001 tells
    text = one_line(catalogs.text)
    if _is_for_want_of_a_database(catalogs.error):
        yield checks.Warning(
            text,
            hint="Before the first migrate that is to be expected; else every turn fails until it can be read.",
            id="gm_chat.W018",
        )
    else:
        yield checks.Error(
            text, hint='docs/managers.md, "Catalogs: words for managers", shows an entry.', id="gm_chat.E002"
        )


def _is_for_want_of_a_database(error: BaseException | None) -> bool:
    """Whether ``manage.py migrate``, which runs the checks first, may be what is missing."""
    while error is not None:
        if isinstance(error, Error):
            return True
        error = error.__cause__
    return False
