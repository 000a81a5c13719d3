"""The page, by each contestant: a module with ``page()``, which is what is timed, and ``plain()``.

``plain()`` makes rows of its answer that compare: ``(album's id, title, artist's name, [(track's id, name, ms)])``.
The modules are imported in a Django project that has the tables and their own apps.
"""
