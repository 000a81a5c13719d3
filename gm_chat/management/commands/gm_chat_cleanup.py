"""``manage.py gm_chat_cleanup``: ``chat_cleanup`` under a name that no other app's command takes."""

from gm_chat.management.commands.chat_cleanup import Command

__all__ = ["Command"]
