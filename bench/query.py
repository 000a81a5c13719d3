"""The plan executor against hand-written SQL + dict, in one run: ``python bench/query.py [--rounds N]``.

The page: 200 albums with their artist and all their tracks (2,000 rows below), ordered, with the total; a SQLite file
of 600 albums made here. ``raw`` is a cursor and a loop with the same three statements; ``plan`` is what the ``query``
tool runs, from its JSON arguments to JSON-ready rows. Ratios are of medians, the two taken in turns.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "testproject.settings")

import django  # noqa: E402 - the settings' module must be known first

django.setup()

from django.db import connections  # noqa: E402
from testproject.chinook import managers, models  # noqa: E402

from gm_chat.managers.describe import describe  # noqa: E402
from gm_chat.managers.executor import execute_plan  # noqa: E402
from gm_chat.managers.index import SchemaIndex  # noqa: E402
from gm_chat.managers.plan import build_plan  # noqa: E402
from gm_chat.managers.visibility import visibility_of  # noqa: E402
from gm_chat.plugin import Actor  # noqa: E402

LIMIT = 3.0
ARGUMENTS = {
    "manager": "AlbumManager",
    "fields": ["id", "title", "artist__name", {"tracks": ["id", "name", "milliseconds", "unit_price"]}],
    "order_by": ["title"],
    "limit": 200,
}


def raw() -> dict[str, Any]:
    """The same page by hand."""
    with connections["chinook"].cursor() as cursor:
        cursor.execute(
            'SELECT a."AlbumId", a."Title", r."Name" FROM "Album" a JOIN "Artist" r ON r."ArtistId" = a."ArtistId" '
            'ORDER BY a."Title", a."AlbumId" LIMIT 200'
        )
        albums = [{"id": i, "title": t, "artist": {"name": n}, "tracks": []} for i, t, n in cursor.fetchall()]
        by_id = {album["id"]: album for album in albums}
        marks = ", ".join(["%s"] * len(by_id))
        cursor.execute(
            'SELECT "AlbumId", "TrackId", "Name", "Milliseconds", "UnitPrice" FROM "Track" '
            f'WHERE "AlbumId" IN ({marks}) ORDER BY "TrackId"',
            list(by_id),
        )
        for album, i, n, m, p in cursor.fetchall():
            by_id[album]["tracks"].append({"id": i, "name": n, "milliseconds": m, "unit_price": p})
        cursor.execute('SELECT COUNT(*) FROM "Album"')
        return {"data": albums, "total_count": cursor.fetchone()[0]}


def prepared_plan() -> Callable[[], dict[str, Any]]:
    bindings = describe(managers.MANAGERS).bindings
    actor = Actor()
    view = SchemaIndex.build(item.info for item in bindings.values()).view(visibility_of(actor, bindings))

    def plan() -> dict[str, Any]:
        page = execute_plan(build_plan(ARGUMENTS, view, max_results=200), bindings, actor)
        return {"data": page.data, "total_count": page.total_count}

    return plan


def fill(file: Path) -> None:
    connections.databases["chinook"] = {**connections.databases["default"], "NAME": str(file), "OPTIONS": {}}
    tables = (models.Artist, models.Album, models.Genre, models.MediaType, models.Track)
    with connections["chinook"].schema_editor() as editor:
        for model in tables:
            editor.create_model(model)
        editor.execute('CREATE INDEX "TrackAlbum" ON "Track" ("AlbumId")')  # unmanaged models get none
        editor.execute('CREATE INDEX "AlbumArtist" ON "Album" ("ArtistId")')
    models.Artist.objects.bulk_create(models.Artist(id=n, name=f"artist {n}") for n in range(100))
    models.Genre.objects.create(id=1, name="Rock")
    models.MediaType.objects.create(id=1, name="MPEG")
    models.Album.objects.bulk_create(
        models.Album(id=n, title=f"album {n * 7919 % 600:03}", artist_id=n % 100) for n in range(600)
    )
    models.Track.objects.bulk_create(
        models.Track(
            id=n,
            name=f"track {n}",
            album_id=n % 600,
            genre_id=1,
            media_type_id=1,
            milliseconds=200_000 + n,
            unit_price=Decimal("0.99"),
        )
        for n in range(6_000)
    )


def timed(function: Callable[[], Any]) -> float:
    start = time.perf_counter()
    function()
    return (time.perf_counter() - start) * 1000


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=60)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        fill(Path(folder) / "bench.sqlite3")
        plan = prepared_plan()
        by_hand, planned = raw(), plan()
        assert [row["id"] for row in by_hand["data"]] == [row["id"] for row in planned["data"]]
        assert [len(row["tracks"]) for row in by_hand["data"]] == [len(row["tracks"]) for row in planned["data"]]
        assert by_hand["total_count"] == planned["total_count"] == 600
        pairs = [(timed(raw), timed(plan)) for _ in range(rounds)]
        connections["chinook"].close()
    hand, ours = (statistics.median(times) for times in zip(*pairs, strict=True))
    print(f"raw SQL + dict  {hand:7.2f} ms   1.00")
    print(f"plan            {ours:7.2f} ms   {ours / hand:.2f}   (at most {LIMIT})")
    return 0 if ours / hand <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
