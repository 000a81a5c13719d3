import pytest
from testproject.shop.models import Material

from gm_chat.managers import DeclarationError, ModelManager, computed, expose
from gm_chat.managers.declare import Computed, exposed_in
from gm_chat.plugin import Actor


def test_a_computed_field_remembers_its_function() -> None:
    @computed("decimal", needs=["price"], description="with tax")
    def gross(part: object, actor: object) -> int:
        return 119

    assert isinstance(gross, Computed)
    assert (gross.type, gross.needs, gross.description, gross.nullable) == ("decimal", ("price",), "with tax", True)
    assert gross.function(None, None) == 119  # type: ignore[arg-type] # it reads neither argument


def test_a_computed_field_is_described_by_its_docstring() -> None:
    @computed("string", nullable=False)
    def label(part: object, actor: object) -> str:
        """What stands on the box."""
        return "x"

    assert label.description == "What stands on the box."
    assert not label.nullable


def test_an_unknown_type_is_refused_with_the_known_ones() -> None:
    with pytest.raises(
        DeclarationError, match=r"test_declare\..*gross: computed\('money'\) is no field type; known: string, integer"
    ):

        @computed("money")  # type: ignore[arg-type] # the mistake under test
        def gross(part: object, actor: object) -> int:
            return 1


def test_needs_given_as_text_is_refused() -> None:
    with pytest.raises(DeclarationError, match=r"write a list: needs=\['price'\]"):

        @computed("decimal", needs="price")
        def gross(part: object, actor: object) -> int:
            return 1


def test_a_function_of_another_shape_is_refused() -> None:
    with pytest.raises(DeclarationError, match=r"gross: a computed field takes \(instance, actor\)"):

        @computed("decimal")  # type: ignore[arg-type] # the mistake under test
        def gross(part: object) -> int:
            return 1


def test_one_line_makes_a_manager_named_after_its_model() -> None:
    manager = expose(Material, aliases=["stuff"], public=True, mutations=[])
    assert manager.__name__ == "MaterialManager"
    assert issubclass(manager, ModelManager)
    assert manager.__module__ == __name__
    assert (manager.chat_exposed, manager.model, manager.fields) == (True, Material, "__all__")
    assert (manager.aliases, manager.public, manager.mutations) == (["stuff"], True, [])


def test_exposing_needs_no_assignment() -> None:
    before = len(exposed_in(__name__))
    expose(Material, name="StuffManager", description="Stuff.")
    assert [manager.__name__ for manager in exposed_in(__name__)[before:]] == ["StuffManager"]
    assert exposed_in("no.such.module") == ()


def test_exposing_something_else_is_refused() -> None:
    with pytest.raises(DeclarationError, match=r"expose\('shop.Part'\): expected a model class"):
        expose("shop.Part")  # type: ignore[arg-type] # the mistake under test


def test_the_hooks_of_a_manager_hide_nothing_by_themselves() -> None:
    """So that an override may build on them with ``super()``."""
    names, rows, nobody = frozenset({"id"}), Material.objects.all(), Actor()
    assert ModelManager.visible_fields(names, nobody) is names
    assert ModelManager.visible_to(rows, nobody) is rows
