"""Questions about Chinook: the arguments of one ``query`` call, and the same answer in hand-written SQL.

``columns`` are paths into the result's rows; a path through a list gives one line for each of its items.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True)
class Question:
    """``sql`` gives what flattening the result's rows to ``columns`` must give, in order if ``order_by`` is asked."""

    text: str
    args: dict[str, Any]
    columns: tuple[str, ...]
    sql: str
    counts: bool = False


QUESTIONS: Final = (
    Question(
        "Which tracks longer than five minutes are by Led Zeppelin, with album and genre?",
        {
            "manager": "TrackManager",
            "fields": ["name", "milliseconds", "album__title", "genre__name"],
            "filters": {"milliseconds__gt": 300_000, "album__artist__name": "Led Zeppelin"},
            "order_by": ["-milliseconds"],
        },
        ("name", "milliseconds", "album.title", "genre.name"),
        """
        SELECT t.Name, t.Milliseconds, a.Title, g.Name
        FROM Track t JOIN Album a USING (AlbumId) JOIN Artist r USING (ArtistId) JOIN Genre g ON g.GenreId = t.GenreId
        WHERE t.Milliseconds > 300000 AND r.Name = 'Led Zeppelin' ORDER BY t.Milliseconds DESC, t.TrackId
        """,
    ),
    Question(
        "Who supports our customers in Germany?",
        {
            "manager": "CustomerManager",
            "fields": ["last_name", "city", {"support_rep": ["first_name", "last_name"]}],
            "filters": {"country__iexact": "germany"},
            "order_by": ["last_name"],
        },
        ("last_name", "city", "support_rep.first_name", "support_rep.last_name"),
        """
        SELECT c.LastName, c.City, e.FirstName, e.LastName
        FROM Customer c LEFT JOIN Employee e ON e.EmployeeId = c.SupportRepId
        WHERE c.Country = 'Germany' ORDER BY c.LastName
        """,
    ),
    Question(
        "What are the ten largest invoices, and who got them?",
        {
            "manager": "InvoiceManager",
            "fields": ["id", "total", "invoice_date", "customer__email"],
            "order_by": ["-total"],
            "limit": 10,
        },
        ("id", "total", "invoice_date", "customer.email"),
        """
        SELECT i.InvoiceId, printf('%.2f', i.Total), strftime('%Y-%m-%dT%H:%M:%S+00:00', i.InvoiceDate), c.Email
        FROM Invoice i JOIN Customer c USING (CustomerId) ORDER BY i.Total DESC, i.InvoiceId LIMIT 10
        """,
    ),
    Question(
        "Which albums do the artists whose name starts with 'Iron' have, with every track's price?",
        {
            "manager": "ArtistManager",
            "fields": ["name", {"albums": ["title", {"tracks": ["name", "unit_price"]}]}],
            "filters": {"name__startswith": "Iron"},
            "order_by": ["name"],
        },
        ("name", "albums.title", "albums.tracks.name", "albums.tracks.unit_price"),
        """
        SELECT r.Name, a.Title, t.Name, printf('%.2f', t.UnitPrice)
        FROM Artist r JOIN Album a USING (ArtistId) JOIN Track t USING (AlbumId)
        WHERE r.Name LIKE 'Iron%' ORDER BY r.Name, a.AlbumId, t.TrackId
        """,
    ),
    Question(
        "Which jazz tracks has nobody bought?",
        {
            "manager": "TrackManager",
            "fields": ["id", "name"],
            "filters": {"genre": {"name": "Jazz"}, "invoice_lines__isnull": True},
        },
        ("id", "name"),
        """
        SELECT t.TrackId, t.Name FROM Track t JOIN Genre g USING (GenreId)
        WHERE g.Name = 'Jazz' AND NOT EXISTS (SELECT 1 FROM InvoiceLine l WHERE l.TrackId = t.TrackId)
        ORDER BY t.TrackId
        """,
    ),
    Question(
        "Who reports to whom?",
        {
            "manager": "EmployeeManager",
            "fields": ["last_name", "title", "reports_to__last_name"],
            "order_by": ["reports_to__last_name", "last_name"],
        },
        ("last_name", "title", "reports_to.last_name"),
        """
        SELECT e.LastName, e.Title, b.LastName FROM Employee e LEFT JOIN Employee b ON b.EmployeeId = e.ReportsTo
        ORDER BY b.LastName NULLS LAST, e.LastName
        """,
    ),
    Question(
        "What is on the playlist Grunge, and by whom?",
        {
            "manager": "PlaylistManager",
            "fields": ["name", {"tracks": ["name", "album__artist__name"]}],
            "filters": {"name": "Grunge"},
        },
        ("name", "tracks.name", "tracks.album.artist.name"),
        """
        SELECT p.Name, t.Name, r.Name
        FROM Playlist p JOIN PlaylistTrack pt USING (PlaylistId) JOIN Track t USING (TrackId)
        JOIN Album a USING (AlbumId) JOIN Artist r USING (ArtistId)
        WHERE p.Name = 'Grunge' ORDER BY t.TrackId
        """,
    ),
    Question(
        "How many tracks are neither rock nor metal nor cheap?",
        {
            "manager": "TrackManager",
            "fields": ["id"],
            "filters": {"not": {"or": [{"genre__name__in": ["Rock", "Metal"]}, {"unit_price__lt": 1}]}},
            "limit": 1,
        },
        ("total_count",),
        """
        SELECT COUNT(*) FROM Track t LEFT JOIN Genre g USING (GenreId)
        WHERE NOT (COALESCE(g.Name, '') IN ('Rock', 'Metal') OR t.UnitPrice < 1)
        """,
        counts=True,
    ),
    Question(
        "Which invoices went to France until 14 March 2021?",
        {
            "manager": "invoice",
            "fields": ["id", "billingCity", "invoiceDate"],
            "filters": {
                "invoiceDate__gte": "2021-01-01",
                "invoiceDate_Lte": "2021-03-14",
                "billing_country_Icontains": "france",
            },
            "order_by": ["invoice_date"],
        },
        ("id", "billing_city", "invoice_date"),
        """
        SELECT InvoiceId, BillingCity, strftime('%Y-%m-%dT%H:%M:%S+00:00', InvoiceDate) FROM Invoice
        WHERE InvoiceDate >= '2021-01-01' AND InvoiceDate < '2021-03-15' AND BillingCountry = 'France'
        ORDER BY InvoiceDate, InvoiceId
        """,
    ),
    Question(
        "Which customers bought something by Iron Maiden on an invoice of more than ten?",
        {
            "manager": "CustomerManager",
            "fields": ["id", "last_name"],
            "filters": {"invoices": {"total__gt": 10, "lines__track__album__artist__name": "Iron Maiden"}},
        },
        ("id", "last_name"),
        """
        SELECT DISTINCT c.CustomerId, c.LastName
        FROM Customer c JOIN Invoice i USING (CustomerId) JOIN InvoiceLine l USING (InvoiceId)
        JOIN Track t USING (TrackId) JOIN Album a USING (AlbumId) JOIN Artist r USING (ArtistId)
        WHERE i.Total > 10 AND r.Name = 'Iron Maiden' ORDER BY c.CustomerId
        """,
    ),
    Question(
        "In which playlists is the media type not MPEG audio, by entry?",
        {
            "manager": "PlaylistTrackManager",
            "fields": ["playlist__name", "track__name", "track__media_type__name"],
            "filters": {"track__media_type__name__icontains": "AAC", "playlist__name__startswith": "90"},
        },
        ("playlist.name", "track.name", "track.media_type.name"),
        """
        SELECT p.Name, t.Name, m.Name
        FROM PlaylistTrack pt JOIN Playlist p USING (PlaylistId) JOIN Track t USING (TrackId)
        JOIN MediaType m USING (MediaTypeId)
        WHERE m.Name LIKE '%AAC%' AND p.Name LIKE '90%' ORDER BY pt.PlaylistId, pt.TrackId
        """,
    ),
)
