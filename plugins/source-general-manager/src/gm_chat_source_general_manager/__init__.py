"""The managers of a GeneralManager project, as managers of gm-chat."""

from gm_chat_source_general_manager.options import ManagerOptions, Options

__all__ = ["ManagerOptions", "Options"]
