"""Which managers the project declares: found once in every app's ``chat_managers.py``, then kept.

Everything is answered from one :class:`~gm_chat.managers.describe.Description`, built on first use. A mistake in a
declaration is raised at each use until it is mended, never remembered as half a registry.
"""

from __future__ import annotations

import importlib
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from django.apps import apps
from django.utils.module_loading import module_has_submodule

from gm_chat.managers.declare import DeclarationError, ModelManager, exposed_in
from gm_chat.managers.describe import Description, describe

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import ModuleType

    from gm_chat.managers.binding import Binding

__all__ = ["bindings", "description", "notes", "reset", "using", "warnings"]

MODULE = "chat_managers"

_lock = threading.RLock()
_described: list[Description] = []  # what counts now is the last one


def bindings() -> Mapping[str, Binding]:
    """Every exposed manager by name. Discovers the apps' declarations on first use."""
    return description().bindings


def warnings() -> list[tuple[str, str]]:
    """(manager, field) pairs: fields that look like secrets and are exposed because someone listed them."""
    return list(description().warnings)


def notes() -> list[str]:
    """What was left out of the exposed managers, and why, in words."""
    return list(description().notes)


def description() -> Description:
    """All of it at once; built on first use, by one thread."""
    with _lock:
        if not _described:
            _described.append(describe(_discover()))
        return _described[-1]


def reset() -> None:
    """Forget what was found; the next use discovers anew."""
    with _lock:
        _described.clear()


@contextmanager
def using(*managers: type[ModelManager]) -> Iterator[Mapping[str, Binding]]:
    """Let exactly these declarations count instead of the apps', for tests and scripts without an app."""
    described = describe(managers)
    with _lock:
        _described.append(described)
    try:
        yield described.bindings
    finally:
        with _lock:
            _described[:] = [item for item in _described if item is not described]


def _discover() -> Iterator[type[ModelManager]]:
    seen: set[type[ModelManager]] = set()
    for app in apps.get_app_configs():
        if app.module is None or not module_has_submodule(app.module, MODULE):
            continue
        for manager in _declared_in(_import(f"{app.name}.{MODULE}")):
            if manager not in seen:
                seen.add(manager)
                yield manager


def _import(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except DeclarationError:
        raise
    except Exception as error:
        # Anything can go wrong in a project's module; what matters is that its name is in the message.
        raise DeclarationError(f"importing {name} failed: {type(error).__name__}: {error}") from error


def _declared_in(module: ModuleType) -> Iterator[type[ModelManager]]:
    for value in vars(module).values():
        if isinstance(value, type) and issubclass(value, ModelManager) and value is not ModelManager:
            yield value
    yield from exposed_in(module.__name__)
