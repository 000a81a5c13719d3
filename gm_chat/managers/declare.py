"""How an application says what the chat may see: in ``chat_managers.py`` of any installed app.

::

    from gm_chat.managers import ModelManager, computed, expose, mutation

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

        @mutation
        def retire_part(part, actor, replacement: Part | None = None):
            \"\"\"Take a part out of use.\"\"\"              # retirePart, for whoever may change parts
            part.retire(replacement)

Nothing here reads a model: a declaration is judged when the registry describes it, when every app is ready.
"""

from __future__ import annotations

import inspect
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn, get_args

from django.core.exceptions import ImproperlyConfigured

from gm_chat.managers.api import FieldType
from gm_chat.managers.names import graphql_name

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from django.db import models

    from gm_chat.plugin.context import Actor

__all__ = [
    "MUTATION_KINDS",
    "Computed",
    "CustomMutation",
    "DeclarationError",
    "ModelManager",
    "computed",
    "expose",
    "exposed_in",
    "fail",
    "mutation",
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

    preview: ClassVar[bool] = True
    """Whether a mutation that needs an approval is first run and rolled back, to show what it would do. ``False`` where
    saving has effects outside the database: what is shown is then what ``full_clean()`` accepts."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomMutation:
    """A mutation of the project's own, as :func:`mutation` leaves it in the class body.

    ``permission`` is a permission's name, a function of the actor, or ``None`` for "change the model". ``parameters``
    are those after ``actor``; with ``on_row`` the function takes a row before it.
    """

    function: Callable[..., Any]
    name: str
    on_row: bool
    parameters: tuple[inspect.Parameter, ...]
    permission: str | Callable[[Actor], bool] | None
    description: str


def mutation(
    function: Callable[..., Any] | None = None,
    *,
    name: str | None = None,
    permission: str | Callable[[Actor], bool] | None = None,
) -> Any:
    """Add a mutation: the decorated function takes ``(row, actor, ...)``, or ``(actor, ...)`` if it is about no row.

    The row is one that the actor sees, locked. Each further parameter has an annotation: ``str``, ``int``, ``float``,
    ``bool``, ``Decimal``, ``date``, ``datetime``, ``time``, ``timedelta``, ``UUID``, an ``Enum`` or ``Literal``, a
    Django model or a :class:`ModelManager` (the id of a row that the actor sees comes, the row is passed), a ``list``
    of these, each of them ``| None``; ``Annotated[int, "pieces"]`` describes one. The function runs in one transaction
    and returns, in JSON types, what is told of it. ``ValidationError`` refuses the input, ``PermissionDenied`` the
    actor; whatever else it raises ends the turn.

    It is called by the function's name in camelCase, or ``name``. The docstring says what it does.
    """

    def decorate(function: Callable[..., Any]) -> CustomMutation:
        function = function.__func__ if isinstance(function, staticmethod) else function
        where = f"{function.__module__}.{function.__qualname__}"
        if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
            raise DeclarationError(f"{where}: a mutation runs in a database transaction, which is synchronous: use def")
        if inspect.isgeneratorfunction(function):
            raise DeclarationError(f"{where}: a mutation returns its result; it may not yield")
        if not (permission is None or isinstance(permission, str) or callable(permission)):
            raise DeclarationError(f"{where}: permission={permission!r} is no permission's name and no function")
        if inspect.iscoroutinefunction(permission):
            raise DeclarationError(f"{where}: permission={permission.__qualname__} is asked in a thread: use def")
        on_row, parameters = _signature(function, where)
        first, *rest = function.__name__.split("_")
        return CustomMutation(
            function=function,
            name=graphql_name(name or first + "".join(part[:1].upper() + part[1:] for part in rest)),
            on_row=on_row,
            parameters=parameters,
            permission=permission,
            description=inspect.cleandoc(function.__doc__ or ""),
        )

    return decorate if function is None else decorate(function)


def _signature(function: Callable[..., Any], where: str) -> tuple[bool, tuple[inspect.Parameter, ...]]:
    """Whether a mutation takes a row, and its parameters after ``actor``."""
    parameters = list(inspect.signature(function).parameters.values())
    place = next((index for index, item in enumerate(parameters[:2]) if item.name in ("actor", "_actor")), None)
    if place is None:
        raise DeclarationError(f"{where}: a mutation takes (row, actor, ...), or (actor, ...) if it is about no row")
    arguments = tuple(parameters[place + 1 :])
    for item in arguments:
        if item.kind not in (item.POSITIONAL_OR_KEYWORD, item.KEYWORD_ONLY):
            raise DeclarationError(f"{where}: {item.name!r} is {item.kind.description}; an input is called by its name")
        if item.annotation is item.empty:
            raise DeclarationError(f"{where}: {item.name!r} has no annotation; write for instance {item.name}: str")
        if item.name == "id":
            raise DeclarationError(f"{where}: 'id' is the input that names the row; call the parameter something else")
    return place == 1, arguments


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
