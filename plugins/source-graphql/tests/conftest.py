"""The schemas of the tests are importable as the settings name them: ``shop_schemas.with_graphene.schema``."""

import sys
from importlib.util import find_spec
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

NEEDED = ("gm_chat_source_graphql", "strawberry_django", "ariadne")
if not all(map(find_spec, NEEDED)):  # of an environment for other parts; the environment `graphql` has them
    collect_ignore_glob = ["test_*.py"]
