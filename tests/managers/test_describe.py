"""Declarations become values, and every mistake in one names class, attribute, value and what is known."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from django.db import models
from django.test.utils import isolate_apps
from testproject.shop import models as shop

from gm_chat.managers import DeclarationError, ModelManager, computed, expose
from gm_chat.managers.describe import describe


def declare(
    name: str = "PartManager", *, base: type[ModelManager] = ModelManager, **attributes: Any
) -> type[ModelManager]:
    namespace = {"__module__": __name__, "chat_exposed": True, "model": shop.Part, **attributes}
    return type(name, (base,), {key: value for key, value in namespace.items() if value is not None})


MATERIAL = expose(shop.Material)


def described(*managers: type[ModelManager]) -> Any:
    return describe(managers).bindings[managers[0].__name__]


# --- what it comes to -------------------------------------------------------------------------------------------


def test_a_binding_holds_what_the_executor_needs() -> None:
    class PartManager(ModelManager):
        """Components."""

        chat_exposed = True
        model = shop.Part
        fields = ("id", "number", "price", "material", "gross")
        aliases = ("item",)
        public = True
        descriptions: ClassVar = {"number": "unique part number", "material": "what it is made of"}
        gross = computed("decimal", needs=["price"], description="with tax")(lambda part, actor: part.price)

        @classmethod
        def visible_to(cls, queryset: Any, actor: Any) -> Any:
            return queryset.filter(purchased=True)

    binding = described(PartManager, MATERIAL)
    assert binding.model is shop.Part
    assert binding.columns == {"id": "id", "number": "number", "price": "price"}
    assert binding.relations["material"].target == "MaterialManager"
    assert binding.relations["material"].kind == "to_one"
    assert binding.computed["gross"].needs == ("price",)
    assert binding.visible_to == PartManager.visible_to
    assert binding.visible_fields is None
    info = binding.info
    assert (info.name, info.description, info.aliases, info.public) == ("PartManager", "Components.", ("item",), True)
    fields = {item.name: item for item in info.fields}
    assert list(fields) == ["id", "number", "price", "gross"]
    assert fields["number"].description == "unique part number"
    assert fields["price"].description == "net, in euro"
    assert fields["price"].nullable
    assert "gte" in fields["price"].lookups
    assert fields["gross"].computed
    assert fields["gross"].lookups == ()
    (relation,) = info.relations
    assert (relation.name, relation.many, relation.nullable) == ("material", False, False)
    assert relation.description == "what it is made of"


def test_names_are_kept_as_they_are_listed() -> None:
    binding = described(declare(fields=["bomline_set"]), expose(shop.BomLine))
    assert binding.relations["bomline_set"].query_name == "bomline"
    assert binding.relations["bomline_set"].kind == "to_many"
    assert described(declare(model=shop.Project, fields=["id"])).columns == {"id": "pk"}
    assert described(declare(fields=["material_id"])).columns == {"material_id": "material_id"}


def test_a_computed_field_need_not_be_listed() -> None:
    binding = described(declare(fields=["id"], label=computed("string")(lambda part, actor: "x")))
    assert [item.name for item in binding.info.fields] == ["id", "label"]


def test_bases_share_what_they_declare() -> None:
    class Base(ModelManager):
        fields = ("id", "label")
        label = computed("string")(lambda instance, actor: str(instance))

    assert describe([Base]).bindings == {}  # it has no model
    assert list(described(declare(base=Base)).computed) == ["label"]


def test_descriptions_fall_back_to_docstring_and_verbose_name() -> None:
    assert described(MATERIAL).info.description == "What parts are made of."
    assert described(expose(shop.BomLine)).info.description == "Line of a bill of material"
    assert described(expose(shop.Tag, description="Labels.")).info.description == "Labels."
    fields = {item.name: item.description for item in described(declare()).info.fields}
    assert fields["number"] == "part number"  # the verbose name says more than the name
    assert fields["released_on"] == ""  # it does not


def test_a_hidden_manager_is_checked_but_not_shown() -> None:
    hidden = declare("HiddenManager", chat_exposed=False)
    assert describe([hidden]).bindings == {}
    with pytest.raises(DeclarationError, match=r"HiddenManager\.fields: 'nam'"):
        describe([declare("HiddenManager", chat_exposed=False, fields=["nam"])])


def test_a_relation_needs_an_exposed_target() -> None:
    assert described(expose(shop.Specification)).info.relations == ()
    result = describe([declare(fields=["id", "material"])])
    assert result.bindings["PartManager"].info.relations == ()
    assert result.notes[0] == "PartManager.material is left out: shop.Material has no exposed manager"
    assert describe([declare("SpecManager", model=shop.Specification)]).notes == (
        "SpecManager has no create: the model requires 'part', which fields= leaves out",
    )


def test_of_several_managers_of_a_model_the_usual_name_wins() -> None:
    other = declare("AlloyManager", model=shop.Material)
    assert described(declare(), other, MATERIAL).relations["material"].target == "MaterialManager"
    chosen = declare(relations={"material": "AlloyManager"})
    assert described(chosen, other, MATERIAL).relations["material"].target == "AlloyManager"


def test_several_equally_near_managers_are_left_out_or_refused() -> None:
    others = [declare("AlloyManager", model=shop.Material), declare("MetalManager", model=shop.Material)]
    result = describe([declare(), *others])
    assert (
        "PartManager.material is left out: shop.Material AlloyManager and MetalManager are equally near" in result.notes
    )
    with pytest.raises(DeclarationError, match="'material' leads to AlloyManager or MetalManager: choose"):
        describe([declare(fields=["id", "material"]), *others])


def test_a_proxy_stands_for_its_table() -> None:
    with isolate_apps("testproject.shop"):

        class Metal(shop.Material):
            class Meta:
                proxy = True
                app_label = "shop"

    binding = described(declare(fields=["material"]), expose(Metal))
    assert binding.relations["material"].target == "MetalManager"


def test_generic_relations_are_to_many() -> None:
    binding = described(declare(fields=["remarks"]), expose(shop.Note))
    assert binding.relations["remarks"].kind == "to_many"


# --- secrets ----------------------------------------------------------------------------------------------------


def test_secrets_are_left_out_unless_asked_for() -> None:
    result = describe([expose(shop.Supplier)])
    assert "api_token" not in result.bindings["SupplierManager"].columns
    assert result.warnings == ()
    result = describe([declare("SupplierManager", model=shop.Supplier, fields=["id", "api_token"])])
    assert "api_token" in result.bindings["SupplierManager"].columns
    assert result.warnings == (("SupplierManager", "api_token"),)


# --- mistakes ---------------------------------------------------------------------------------------------------


class Helper:
    pass


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"model": None}, r"PartManager\.model: is missing"),
        ({"model": "shop.Part"}, r"PartManager\.model: 'shop\.Part' is no Django model class"),
        ({"model": Helper}, r"PartManager\.model: <class .*Helper'> is no Django model class"),
        (
            {"fields": ["nam"]},
            r"fields: 'nam': shop\.Part has no such field or relation; did you mean 'name'\? known: ",
        ),
        ({"fields": "name"}, r"fields: 'name' is no list of names; write fields = \["),
        ({"fields": [1]}, r"fields: \[1\] is no list of names"),
        ({"fields": ["name", "name"]}, r"fields: 'name' is listed twice"),
        ({"fields": []}, r"fields: leave nothing to show"),
        ({"aliases": "item"}, r"aliases: 'item' is no list of names"),
        ({"descriptions": ["x"]}, r"descriptions: \['x'\] is no mapping"),
        ({"descriptions": {"nmae": "x"}}, r"descriptions: 'nmae' is not offered by this manager; did you mean 'name'"),
        (
            {"relations": {"material": "MetalManager"}},
            r"relations: 'MetalManager' is no exposed manager of shop\.Material",
        ),
        ({"relations": {"name": "MaterialManager"}}, r"relations: 'name' is not offered by this manager"),
        ({"mutations": ["craete"]}, r"mutations: 'craete' is no mutation; did you mean 'create'"),
        ({"chat_exposed": "yes"}, r"chat_exposed: 'yes' is neither True nor False"),
        ({"public": 1}, r"public: 1 is neither True nor False"),
        ({"aliasses": ["item"]}, r"aliasses: 'aliasses' means nothing to a manager; did you mean 'aliases'"),
        ({"visible_too": classmethod(lambda cls, q, a: q)}, r"visible_too: .* did you mean 'visible_to'"),
        ({"visible_to": lambda queryset, actor: queryset}, r"visible_to: must be a classmethod"),
        (
            {"price": computed("decimal")(lambda p, a: 1)},
            r"price: a computed field may not take the name of shop\.Part\.price",
        ),
        (
            {"gross": computed("decimal", needs=["prize"])(lambda p, a: 1)},
            r"gross: needs='prize': shop\.Part has no such field or relation; did you mean 'price'",
        ),
    ],
)
def test_mistakes(attributes: dict[str, Any], message: str) -> None:
    with pytest.raises(DeclarationError, match=message) as caught:
        describe([declare(**attributes), MATERIAL])
    assert str(caught.value).startswith(__file__)
    assert "PartManager" in str(caught.value)


def test_other_functions_of_a_manager_are_its_own_business() -> None:
    assert described(declare(half=staticmethod(lambda x: x / 2), fields=["id"])).info.name == "PartManager"


def test_what_cannot_be_offered_is_explained() -> None:
    with pytest.raises(DeclarationError, match=r"shop\.Note\.subject cannot be offered: a generic foreign key"):
        describe([declare(model=shop.Note, fields=["subject"])])
    with pytest.raises(DeclarationError, match=r"shop\.Placement\.id cannot be offered: several columns"):
        describe([declare(model=shop.Placement, fields=["id"])])


def test_two_managers_of_one_name_are_refused() -> None:
    with pytest.raises(DeclarationError, match=r"'MaterialManager' is also declared in .*test_describe; rename one"):
        describe([MATERIAL, expose(shop.Material)])


@isolate_apps("testproject.shop")
def test_a_model_without_a_table_is_refused() -> None:
    class Abstract(models.Model):
        class Meta:
            abstract = True
            app_label = "shop"

    class Swapped(models.Model):
        class Meta:
            swappable = "ROOT_URLCONF"
            app_label = "shop"

    with pytest.raises(DeclarationError, match="'Abstract' is abstract; name the model that has a table"):
        describe([declare(model=Abstract)])
    with pytest.raises(DeclarationError, match=r"'Swapped' is swapped for testproject\.urls"):
        describe([declare(model=Swapped)])
