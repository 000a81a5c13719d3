"""What came out, for people (:func:`table`, :func:`comparison`, :func:`baseline`, a page) and for CI (JUnit)."""

from gm_chat.evals.reports.junit import write_junit
from gm_chat.evals.reports.page import write_html
from gm_chat.evals.reports.terminal import baseline, comparison, failure_lines, table

__all__ = ["baseline", "comparison", "failure_lines", "table", "write_html", "write_junit"]
