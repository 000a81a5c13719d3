from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.test import override_settings
from testproject.shop import models as shop

from gm_chat.managers import DeclarationError, ModelManager, expose, registry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

IMPORTS = "from testproject.shop.models import Part\nfrom gm_chat.managers import ModelManager, expose\n"


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    registry.reset()
    yield
    registry.reset()


@pytest.fixture
def make_app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, str], str]]:
    """Make an installable app with a ``chat_managers.py`` of the given text."""
    made: list[str] = []

    def make(name: str, text: str) -> str:
        folder = tmp_path / name
        folder.mkdir()
        (folder / "__init__.py").touch()
        (folder / "chat_managers.py").write_text(text, encoding="utf-8")
        made.append(name)
        return name

    monkeypatch.syspath_prepend(tmp_path)
    yield make
    for module in [module for module in sys.modules if module.split(".")[0] in made]:
        del sys.modules[module]


@pytest.fixture
def installed(settings: Any) -> Callable[..., Any]:
    def install(*apps: str) -> Any:
        registry.reset()
        return override_settings(INSTALLED_APPS=[*settings.INSTALLED_APPS, *apps])

    return install


def test_every_apps_declarations_are_found() -> None:
    found = registry.bindings()
    assert found["PartManager"].model is shop.Part
    assert found["TagManager"].model is shop.Tag  # exposed without an assignment
    assert "PaymentManager" not in found  # hidden
    assert "ModelManager" not in found


def test_they_are_found_once() -> None:
    assert registry.bindings() is registry.bindings()
    before = registry.bindings()
    registry.reset()
    assert registry.bindings() is not before


def test_threads_get_the_same_answer() -> None:
    found: list[Any] = []
    start = threading.Barrier(8)

    def ask() -> None:
        start.wait()
        found.append(registry.description())

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len({id(item) for item in found}) == 1


def test_warnings_and_notes() -> None:
    class SupplierManager(ModelManager):
        chat_exposed = True
        model = shop.Supplier
        fields = ("id", "api_token", "parts")

    with registry.using(SupplierManager):
        assert registry.warnings() == [("SupplierManager", "api_token")]
        assert "SupplierManager.parts is left out: shop.Part has no exposed manager" in registry.notes()


def test_declarations_without_an_app() -> None:
    with registry.using(expose(shop.Tag, name="LabelManager")) as bindings:
        assert list(bindings) == ["LabelManager"]
        assert registry.bindings() is bindings
        with registry.using():
            assert registry.bindings() == {}
        registry.reset()
        assert "PartManager" in registry.bindings()
    assert "PartManager" in registry.bindings()


def test_a_package_and_a_shared_class_count_once(make_app: Any, installed: Any) -> None:
    imports = "from testproject.shop.models import Tag\nfrom gm_chat.managers import expose\n"
    make_app("first_app", f"{imports}x = y = expose(Tag, name='LabelManager')\n")
    make_app("second_app", "from first_app.chat_managers import x\n")
    with installed("first_app", "second_app"):
        assert "LabelManager" in registry.bindings()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import nothing_of_that_name", r"importing bad_app\.chat_managers failed: ModuleNotFoundError: No module"),
        ("def broken(:", r"importing bad_app\.chat_managers failed: SyntaxError"),
        (
            f"{IMPORTS}class OtherManager(ModelManager):\n  chat_exposed = True\n  model = Part\n  fields = ['nam']\n",
            r"bad_app.chat_managers\.py: OtherManager\.fields: 'nam'",
        ),
        (
            f"{IMPORTS}expose(Part)\n",
            r"bad_app.chat_managers\.py: PartManager\.__name__: 'PartManager' is also declared in testproject\.shop",
        ),
        ("from gm_chat.managers import computed\n@computed('money')\ndef x(a, b): ...\n", r"x: computed\('money'\)"),
    ],
)
def test_mistakes_name_file_and_class(make_app: Any, installed: Any, text: str, message: str) -> None:
    with installed(make_app("bad_app", text)):
        for _ in range(2):  # a mistake is not forgotten
            with pytest.raises(DeclarationError, match=message):
                registry.bindings()


def test_an_app_without_declarations_is_no_mistake() -> None:
    assert Path(shop.__file__).with_name("chat_managers.py").exists()
    with override_settings(INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes"]):
        registry.reset()
        assert registry.bindings() == {}
