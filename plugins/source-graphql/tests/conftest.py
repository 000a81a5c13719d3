"""The schemas of the tests are importable as the settings name them: ``shop_schemas.with_graphene.schema``."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
