"""The project of the tests is importable as its settings name it."""

from importlib.util import find_spec

NEEDED = ("gm_chat_source_general_manager", "general_manager", "strawberry_django")
if not all(map(find_spec, NEEDED)):  # of an environment for other parts; the environment `gmanager` has them
    collect_ignore_glob = ["test_*.py"]
