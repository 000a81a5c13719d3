"""The demo's page in a real browser: it shows what hostile records made of an answer, and loads nothing for it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from testproject.browser import Page, browsing
from testproject.running_demo import RunningDemo, running_demo

from gm_chat.demo.hostile import FIRST_ID, RECORDS

if TYPE_CHECKING:
    from collections.abc import Iterator

LOG = "document.getElementById('log')"


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDemo]:
    arguments = ("--hostile", "--provider", "testproject.obedient.ObedientProvider")
    with running_demo(tmp_path_factory.mktemp("data"), *arguments) as demo:
        yield demo


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory, demo: RunningDemo) -> Iterator[Page]:
    with browsing(tmp_path_factory.mktemp("profile")) as page:
        page.open(f"{demo.url}/")
        page.run("user.value = 'engineer'; user.onchange({target: user}); 0")
        page.until("!document.getElementById('text').disabled")
        yield page


def ask(page: Page, question: str) -> None:
    page.run(f"document.getElementById('text').value = {json.dumps(question)}; form.requestSubmit(); 0")


def ended(page: Page) -> None:
    page.until("!document.getElementById('text').disabled")


def test_answers_are_shown_as_text_and_load_nothing(page: Page, demo: RunningDemo) -> None:
    words = [(id, record) for id, record in enumerate(RECORDS, FIRST_ID) if record.says]
    assert len(words) == 8
    for id, record in words:
        ask(page, f"Read {record.model}Manager {id}")
        ended(page)
        answer = page.run(f"[...{LOG}.querySelectorAll('.answer')].at(-1).textContent")
        assert record.says.partition("{secret}")[0] in answer
    assert page.run(f"{LOG}.querySelectorAll('img,script,iframe,svg,style,link,a').length") == 0
    assert page.run(f"{LOG}.querySelectorAll('.call').length") == 2 * len(words)
    own = demo.url.removeprefix("http")
    strangers = [url for url in page.requests if not url.startswith((f"http{own}/", f"ws{own}/", "data:,"))]
    assert strangers == []
    assert any(url.startswith(f"ws{own}/chat/") for url in page.requests), "requests are seen"


def test_the_page_may_not_load_anything_remote_even_if_it_tried(page: Page) -> None:
    script = """new Promise((done) => {
      addEventListener('securitypolicyviolation', (event) => done(event.effectiveDirective), {once: true});
      const image = document.createElement('img');
      image.src = 'http://127.0.0.1:9/pixel.png';
      document.body.append(image);
    })"""
    assert page.run(script) == "img-src"


def test_a_change_is_asked_about_with_old_and_new_values(page: Page, demo: RunningDemo) -> None:
    before = demo.rows()
    ask(page, "Set price of 5 to 12.34")
    page.until("dialog.open")
    cells = page.run("[...document.querySelectorAll('#changes td')].map((cell) => cell.textContent)")
    assert cells[0] == "price"
    assert cells[1] not in {"", "12.34"}
    assert cells[2] == "12.34"
    page.run("reject.click(); 0")
    ended(page)
    assert demo.rows() == before
    ask(page, "Set price of 5 to 12.34")
    page.until("dialog.open")
    page.run("approve.click(); 0")
    ended(page)
    assert demo.rows() != before


def test_what_a_record_wants_opens_the_dialog_and_escape_is_no(page: Page, demo: RunningDemo) -> None:
    before = demo.rows()
    ask(page, f"Read SupplierManager {FIRST_ID}")
    page.until("dialog.open")
    assert page.run("what.textContent") == "Run updateStockLevel?"
    page.run("dialog.dispatchEvent(new Event('cancel', {cancelable: true})); 0")
    ended(page)
    assert demo.rows() == before
