"""The admin pages, in a project that has an admin: the test project itself has none."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.admin import site
from django.contrib.auth import get_user_model
from django.test import Client, RequestFactory
from django.urls import ResolverMatch, path, reverse
from django.utils import timezone

from gm_chat.models import ChatConversation, ChatEventSegment, ChatMessage, ChatPendingConfirmation, ChatTurn

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def project(settings: Any) -> Iterator[None]:
    """A URLconf with the admin's pages, and what these need."""
    settings.INSTALLED_APPS = [*settings.INSTALLED_APPS, "django.contrib.messages", "django.contrib.admin"]
    settings.MIDDLEWARE = [*settings.MIDDLEWARE, "django.contrib.messages.middleware.MessageMiddleware"]
    settings.TEMPLATES = [
        {
            "BACKEND": "django.template.backends.django.DjangoTemplates",
            "APP_DIRS": True,
            "OPTIONS": {
                "context_processors": [
                    "django.template.context_processors.request",
                    *(f"django.contrib.{name}.context_processors.{name}" for name in ("auth", "messages")),
                ]
            },
        }
    ]
    urlconf = ModuleType("urlconf_with_admin")
    urlconf.urlpatterns = [path("admin/", site.urls)]  # type: ignore[attr-defined]  # what makes it a URLconf
    sys.modules[urlconf.__name__] = urlconf
    settings.ROOT_URLCONF = urlconf.__name__
    yield
    del sys.modules[urlconf.__name__]


@pytest.fixture
def conversation() -> ChatConversation:
    user = get_user_model()._default_manager.create(username="ada")
    made = ChatConversation.objects.create(user=user, current_key="k", updated=timezone.now())
    turn = ChatTurn.objects.create(
        id="t1", conversation=made, state="failed", error_code="chat_error", events=[{"kind": "TextChunk", "a": "<b>"}]
    )
    ChatMessage.objects.create(conversation=made, turn=turn, role="user", content="Which <i>parts</i>?")
    call = {"id": "c1", "name": "query", "args": {"manager": "PartManager"}}
    ChatMessage.objects.create(conversation=made, turn=turn, role="assistant", tool_calls=[call])
    ChatPendingConfirmation.objects.create(
        conversation=made, turn=turn, confirmation_id="c2", mutation_name="createPart", payload='{"name": "Bolt"}',
        payload_sha256="0", expires_at=timezone.now(),
    )  # fmt: skip
    return made


@pytest.fixture
def browser(admin_user: Any) -> Client:
    client = Client()
    client.force_login(admin_user)
    return client


def test_conversations_are_listed_and_found(browser: Client, conversation: ChatConversation) -> None:
    ChatConversation.objects.create(session_key="secret-session-key", updated=timezone.now())
    url = reverse("admin:gm_chat_chatconversation_changelist")
    page = browser.get(url).content.decode()
    assert "ada" in page
    assert "session secret…" in page
    assert "secret-session-key" not in page
    found = browser.get(url, {"q": "parts"}).context["cl"].result_list
    assert [(row.pk, row.message_count) for row in found] == [(conversation.pk, 2)]
    assert [row.pk for row in browser.get(url, {"q": "ada"}).context["cl"].result_list] == [conversation.pk]


def test_a_conversation_shows_its_messages_as_text(browser: Client, conversation: ChatConversation) -> None:
    page = browser.get(reverse("admin:gm_chat_chatconversation_change", args=[conversation.pk])).content.decode()
    assert "Which &lt;i&gt;parts&lt;/i&gt;?" in page
    assert "&quot;manager&quot;: &quot;PartManager&quot;" in page
    assert "chat_error" in page
    assert 'name="_save"' not in page


@pytest.mark.parametrize(
    ("name", "key", "text"),
    [
        ("chatturn", lambda: "t1", "&quot;a&quot;: &quot;&lt;b&gt;&quot;"),
        ("chatpendingconfirmation", lambda: ChatPendingConfirmation.objects.get().pk, "&quot;Bolt&quot;"),
    ],
)
def test_turns_and_confirmations(
    browser: Client, conversation: ChatConversation, name: str, key: Any, text: str
) -> None:
    assert browser.get(reverse(f"admin:gm_chat_{name}_changelist")).status_code == 200
    assert text in browser.get(reverse(f"admin:gm_chat_{name}_change", args=[key()])).content.decode()


def test_a_long_turn_is_shown_whole(browser: Client, conversation: ChatConversation) -> None:
    ChatEventSegment.objects.create(turn_id="t1", first_seq=2, last_seq=2, events=[{"kind": "TextChunk", "a": "later"}])
    page = browser.get(reverse("admin:gm_chat_chatturn_change", args=["t1"])).content.decode()
    assert page.index("&lt;b&gt;") < page.index("later")


def test_who_looks_sees_what_died(browser: Client, conversation: ChatConversation) -> None:
    past = timezone.now()
    ChatTurn.objects.create(id="t2", conversation=conversation, active_key="k", alive_until=past)
    ChatPendingConfirmation.objects.update(state="claimed", lease_until=past)
    unknown = browser.get(reverse("admin:gm_chat_chatpendingconfirmation_changelist"), {"state__exact": "unknown"})
    assert [row.confirmation_id for row in unknown.context["cl"].result_list] == ["c2"]
    assert "unknown outcome" in unknown.content.decode()
    turns = browser.get(reverse("admin:gm_chat_chatturn_changelist"), {"error_code__exact": "interrupted"})
    assert [row.pk for row in turns.context["cl"].result_list] == ["t2"]


@pytest.mark.parametrize("name", ["chatconversation", "chatturn", "chatpendingconfirmation"])
def test_nothing_can_be_added_changed_or_deleted(browser: Client, conversation: ChatConversation, name: str) -> None:
    key = {"chatconversation": conversation.pk, "chatturn": "t1"}.get(
        name, ChatPendingConfirmation.objects.values_list("pk", flat=True).get()
    )
    assert browser.get(reverse(f"admin:gm_chat_{name}_add")).status_code == 403
    assert browser.get(reverse(f"admin:gm_chat_{name}_delete", args=[key])).status_code == 403
    assert browser.post(reverse(f"admin:gm_chat_{name}_change", args=[key]), {}).status_code == 403


@pytest.mark.parametrize(
    ("url_name", "allowed"), [("auth_user_delete", True), ("gm_chat_chatconversation_delete", False)]
)
def test_deleting_a_user_may_take_conversations_along(admin_user: Any, url_name: str, allowed: bool) -> None:
    request = RequestFactory().get("/")
    request.user = admin_user
    request.resolver_match = ResolverMatch(str, (), {}, url_name=url_name)
    assert site.get_model_admin(ChatConversation).has_delete_permission(request) is allowed


def test_usage_is_listed_with_its_cost(browser: Client, conversation: ChatConversation, settings: Any) -> None:
    settings.GM_CHAT = {**settings.GM_CHAT, "prices": {"openai": {"input": "2", "output": "8"}}}
    counts = {"input_tokens": 1000, "output_tokens": 500, "cached_tokens": 0, "thinking_tokens": 0, "reported": True}
    ChatTurn.objects.create(id="t2", conversation=conversation, spent={"openai/small": counts})
    turns = browser.get(reverse("admin:gm_chat_chatturn_changelist")).content.decode()
    assert "openai/small" in turns
    assert "0.006000" in turns
    conversation.delete()
    kept = browser.get(reverse("admin:gm_chat_chatusage_changelist")).content.decode()
    assert "openai/small" in kept
    assert "0.006000" in kept
    settings.GM_CHAT = {**settings.GM_CHAT, "prices": {}}
    assert "0.006000" not in browser.get(reverse("admin:gm_chat_chatusage_changelist")).content.decode()
