"""gm-chat's audit events as JSON lines in a Python logger."""

from gm_chat_audit_logging.sink import LoggingSink

__all__ = ["LoggingSink"]
