"""As a project that has GeneralManager's chat adds ours, and forgets where it answers."""

from both_project.settings import *  # noqa: F403 - settings modules are inherited so
from both_project.settings import GM_CHAT

GM_CHAT = {name: value for name, value in GM_CHAT.items() if name != "url"}
