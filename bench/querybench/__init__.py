"""The parts of ``query.py``: databases with the same tables for all, and one process for each contestant."""
