"""What a project may listen to. Sent with ``send_robust``: a receiver that raises is logged and disturbs nobody.

======================== ================================================================================
signal                   arguments
======================== ================================================================================
chat_message_received    ``user``, ``message`` (the text), ``conversation_id``: a message was accepted
chat_tool_called         ``user``, ``tool_name``, ``args``, ``result``: a tool call was completed
chat_mutation_executed   ``user``, ``mutation``, ``input``, ``result``: a write ran, was rejected, timed out, or
                         failed although it was approved; see ``result["status"]``. Not sent while an approval is
                         still awaited
chat_error               ``user``, ``error`` (the exception), ``context`` (``{"transport": ..., ...}``)
chat_forgotten           ``actor`` (as audit events name it), ``export``, ``dry_run``: ``chat_forget`` deletes what is
                         kept of a person; delete what you keep. ``export(rows)`` writes rows of any model out before
                         they go, ``None`` where that is not asked for. Return ``{"what it is": how many}``
======================== ================================================================================

``user`` is the project's user object, or ``None`` for nobody. (Specification: "Signals".)
"""

from typing import Final

from django.dispatch import Signal

__all__ = ["chat_error", "chat_forgotten", "chat_message_received", "chat_mutation_executed", "chat_tool_called"]

chat_message_received: Final = Signal()
chat_tool_called: Final = Signal()
chat_mutation_executed: Final = Signal()
chat_error: Final = Signal()
chat_forgotten: Final = Signal()
