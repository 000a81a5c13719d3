"""For plugins whose managers are Django models of another framework: the core's own description and executors.

Such a source declares a :class:`~gm_chat.managers.ModelManager` for each of its managers, :func:`describe` makes
bindings of them, and :func:`execute_plan` and :func:`execute_aggregate` read them as the project's own are read:
``visible_to`` at every hop, one statement for each relation. What is blocking goes through :func:`run_db`.
"""

from gm_chat.managers.aggregation import execute_aggregate
from gm_chat.managers.binding import Binding, ComputedField, RelationBinding
from gm_chat.managers.deadline import guard
from gm_chat.managers.describe import Description, describe
from gm_chat.managers.executor import execute_plan
from gm_chat.managers.introspect import LOOKUPS, Members, members_of
from gm_chat.managers.names import did_you_mean, is_secret_name
from gm_chat.managers.rows import Scope
from gm_chat.managers.spelling import shown
from gm_chat.persistence.threads import run_db

__all__ = [
    "LOOKUPS",
    "Binding",
    "ComputedField",
    "Description",
    "Members",
    "RelationBinding",
    "Scope",
    "describe",
    "did_you_mean",
    "execute_aggregate",
    "execute_plan",
    "guard",
    "is_secret_name",
    "members_of",
    "run_db",
    "shown",
]
