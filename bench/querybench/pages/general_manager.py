"""GeneralManager over the same models, which its managers wrap: two of its pages, as one holds 100 rows at most."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from django.contrib.auth.models import AnonymousUser
from general_manager.api.graphql import GraphQL

from querybench.pages.raw import rows_of

DOCUMENT = """
{ albumList(page: %d, pageSize: 100, orderBy: [{field: title}]) {
  items { id title artist { name } tracksList(pageSize: 100) { items { id name milliseconds unitPrice } } }
  pageInfo { totalCount } } }
"""
CONTEXT = SimpleNamespace(user=AnonymousUser())


def page() -> Any:
    return [item for number in (1, 2) for item in _ask(number)]


def _ask(number: int) -> Any:
    result = GraphQL.get_schema().execute(DOCUMENT % number, context_value=CONTEXT)
    if result.errors:
        raise RuntimeError(f"GeneralManager: {result.errors}")
    return result.data["albumList"]["items"]


def plain(answer: Any) -> list[Any]:
    return rows_of({**album, "tracks": album["tracksList"]["items"]} for album in answer)
