"""Managers: the business objects that the chat may read and write.

An app's ``chat_managers.py`` declares them (:class:`ModelManager`, :func:`expose`, :func:`computed`, :func:`mutation`);
the registry collects the declarations, ``describe`` turns them into values, ``SchemaIndex`` is built from those once.
"""

from gm_chat.managers.declare import DeclarationError, ModelManager, computed, expose, mutation

__all__ = ["DeclarationError", "ModelManager", "computed", "expose", "mutation"]
