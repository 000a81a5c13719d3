"""Judging a run of a case: what the dataset demands, against what was called, shown and said. No model judges.

:func:`judge` gives a verdict for each demand that the case makes, named as its key in the dataset is. Each says in one
line what was expected and what was found.
"""

from gm_chat.evals.judging.judge import judge
from gm_chat.evals.judging.reference import ReferenceRowsError, reference_rows
from gm_chat.evals.judging.rows import same_rows

__all__ = ["ReferenceRowsError", "judge", "reference_rows", "same_rows"]
