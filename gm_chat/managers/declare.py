"""How an application says what the chat may see: in ``chat_managers.py`` of any installed app.

::

    from gm_chat.managers import ModelManager, computed, expose

    MaterialManager = expose(Material)                     # one line: every field that does not look like a secret

    class PartManager(ModelManager):
        \"\"\"Designed or purchased components.\"\"\"           # what the language model reads
        chat_exposed = True                                # without it the manager stays hidden
        model = Part
        fields = ["id", "number", "price", "material", "orders"]
        aliases = ["component", "item"]

        @classmethod
        def visible_to(cls, queryset, actor):
            return queryset.filter(active=True)

        @computed("decimal", needs=["price"], description="price with tax")
        def gross(part, actor):
            return part.price * 119 / 100

Nothing here reads a model: a declaration is judged when the registry describes it, when every app is ready.
"""

from __future__ import annotations

import inspect
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn, get_args

from django.core.exceptions import ImproperlyConfigured

from gm_chat.managers.api import FieldType

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from django.db import models

    from gm_chat.plugin.context import Actor

__all__ = [
    "MUTATION_KINDS",
    "Computed",
    "DeclarationError",
    "ModelManager",
    "computed",
    "expose",
    "exposed_in",
    "fail",
]

MUTATION_KINDS: Final = ("create", "update", "delete")


class DeclarationError(ImproperlyConfigured):
    """A manager's declaration cannot work; the message names file, class, attribute, value and what is known."""


class ModelManager:
    """A manager over a Django model. Subclass it, never instantiate it; the class's name is the manager's name.

    The docstring is the description that the language model reads (else the model's own, else its verbose name).
    """

    chat_exposed: ClassVar[bool] = False
    """Whether the chat knows the manager at all."""

    model: ClassVar[type[models.Model] | None] = None
    """The Django model. A base class shared by managers leaves it out, and ``chat_exposed`` too."""

    fields: ClassVar[Sequence[str]] = "__all__"
    """Columns and relations by their Django names. ``"__all__"``: all of them, except secret-like names."""

    aliases: ClassVar[Sequence[str]] = ()
    """Other words that people use for it; the search finds the manager by them."""

    descriptions: ClassVar[Mapping[str, str]] = {}
    """What a field or relation means, where help_text and verbose_name do not say it."""

    relations: ClassVar[Mapping[str, str]] = {}
    """The target manager of a relation, where its model has several managers."""

    public: ClassVar[bool] = False
    """Whether anybody may read it, logged in or not."""

    mutations: ClassVar[Sequence[str]] = MUTATION_KINDS
    """Which of ``create``, ``update`` and ``delete`` exist; each still needs its Django permission."""

    @classmethod
    def visible_to(cls, queryset: models.QuerySet[Any], actor: Actor) -> models.QuerySet[Any]:  # noqa: ARG003 - for overrides
        """Limit the rows to those that the actor may see. Applied wherever the manager is reached."""
        return queryset

    @classmethod
    def visible_fields(cls, names: frozenset[str], actor: Actor) -> Collection[str]:  # noqa: ARG003 - for overrides
        """Limit ``names``, the declared fields and relations, to those that the actor may see."""
        return names


@dataclass(frozen=True, slots=True, kw_only=True)
class Computed:
    """A field computed in Python, as :func:`computed` leaves it in the class body."""

    function: Callable[[Any, Actor], Any]
    type: FieldType
    needs: tuple[str, ...]
    description: str
    nullable: bool


def computed(
    type: FieldType, *, needs: Sequence[str] = (), description: str = "", nullable: bool = True
) -> Callable[[Callable[[Any, Actor], Any]], Computed]:
    """Add a field computed from an instance: the decorated function takes ``(instance, actor)``.

    ``needs`` names the model fields that it reads; others are loaded one by one when touched. A computed field
    can be selected, but neither filtered nor ordered by.
    """

    def decorate(function: Callable[[Any, Actor], Any]) -> Computed:
        name = f"{function.__module__}.{function.__qualname__}"
        if type not in get_args(FieldType):
            raise DeclarationError(
                f"{name}: computed({type!r}) is no field type; known: {', '.join(get_args(FieldType))}"
            )
        if isinstance(needs, str):
            raise DeclarationError(f"{name}: needs={needs!r} is text; write a list: needs=[{needs!r}]")
        try:
            inspect.signature(function).bind(None, None)
        except TypeError as error:
            raise DeclarationError(f"{name}: a computed field takes (instance, actor): {error}") from error
        text = description or inspect.cleandoc(function.__doc__ or "")
        return Computed(function=function, type=type, needs=tuple(needs), description=text, nullable=nullable)

    return decorate


_exposed: Final[dict[str, list[type[ModelManager]]]] = {}


def expose(
    model: type[models.Model],
    *,
    name: str | None = None,
    description: str | None = None,
    fields: Sequence[str] = "__all__",
    aliases: Sequence[str] = (),
    public: bool = False,
    mutations: Sequence[str] = MUTATION_KINDS,
) -> type[ModelManager]:
    """Expose a model in one line, as ``<Model>Manager``. For anything more, write a :class:`ModelManager`.

    In a ``chat_managers.py`` the call is enough; assigning its result only gives the class a name to import.
    """
    module = sys._getframe(1).f_globals.get("__name__", "__main__")
    if not inspect.isclass(model):
        raise DeclarationError(f"{module}: expose({model!r}): expected a model class, as in expose(Part)")
    namespace: dict[str, Any] = {
        "__module__": module,
        "__doc__": description,
        "chat_exposed": True,
        "model": model,
        "fields": fields,
        "aliases": aliases,
        "public": public,
        "mutations": mutations,
    }
    manager = type(name or f"{model.__name__}Manager", (ModelManager,), namespace)
    _exposed.setdefault(module, []).append(manager)
    return manager


def exposed_in(module: str) -> Sequence[type[ModelManager]]:
    """What :func:`expose` made in a module, assigned to a name or not."""
    return tuple(_exposed.get(module, ()))


def fail(manager: type[ModelManager], attribute: str, problem: str) -> NoReturn:
    """Refuse a declaration, naming its file, class and attribute."""
    file = getattr(sys.modules.get(manager.__module__), "__file__", None) or manager.__module__
    raise DeclarationError(f"{file}: {manager.__name__}.{attribute}: {problem}")
