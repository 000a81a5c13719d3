"""Keys planted wherever a project may have them, and everything that an operator can look at: no key is in it.

The keys look like no vendor's, so that nothing but knowing where they stand can hide them.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

import pytest
from testproject.deployed import DeployedProject

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("gm_chat_provider_openai")
pytest.importorskip("gm_chat_ratelimit_redis")
pytest.importorskip("gm_chat_audit_logging")

KEYS: Final = {
    place: f"zq9{place}uvw7"
    for place in ("config", "profile", "environment", "variable", "database", "cache", "redis", "layer", "invalid")
}

TEMPLATE: Final = """\
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
SECRET_KEY = "of-no-use-to-anybody-0123456789-abcdefghijklmnopqrstuvwxyz"
ALLOWED_HOSTS = ["testserver"]
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
ROOT_URLCONF = "site_project.urls"
STATIC_URL = "/static/"
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    "gm_chat",
    "gm_chat_audit_logging",
    "members",
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
TEMPLATES = [{
    "BACKEND": "django.template.backends.django.DjangoTemplates",
    "APP_DIRS": True,
    "OPTIONS": {"context_processors": [
        "django.template.context_processors.request",
        "django.contrib.auth.context_processors.auth",
        "django.contrib.messages.context_processors.messages",
    ]},
}]
DATABASES = {
    "default": {"ENGINE": "django.db.backends.sqlite3", "NAME": HERE / "db.sqlite3", "PASSWORD": "{database}"},
    "away": {"ENGINE": "django.db.backends.postgresql", "NAME": "x", "HOST": "127.0.0.1", "PORT": "1",
             "USER": "ada", "PASSWORD": "{database}"},
}
CACHES = {"default": {"BACKEND": "django.core.cache.backends.redis.RedisCache",
                      "LOCATION": "redis://:{cache}@127.0.0.1:1/0"}}
CHANNEL_LAYERS = {"default": {"BACKEND": "channels_redis.core.RedisChannelLayer",
                              "CONFIG": {"hosts": ["redis://:{layer}@127.0.0.1:1/0"]}}}
GM_CHAT = {
    "enabled": True,
    "provider": "openai",
    "provider_config": {"api_key": "{config}", "base_url": "http://127.0.0.1:1/v1", "max_retries": 0,
                        "headers": {"X-Api-Key": "{config}"}},
    "provider_profiles": {
        "spare": {"provider": "anthropic", "trust_group": "a", "provider_config": {"api_key": "{profile}"}},
    },
    "audit": {"enabled": True, "level": "all"},
    "plugins": {
        "ratelimit_redis": {"url": "redis://:{redis}@127.0.0.1:1/0"},
        "audit_logging": {"database": True},
    },
    "disabled_plugins": ["acme"],
}
"""
SETTINGS: Final = re.sub(r"\{(\w+)\}", lambda found: KEYS[found[1]], TEMPLATE)

PROBE: Final = """\
import logging, sys, traceback

logging.basicConfig(level=logging.DEBUG, stream=sys.stdout)
import django
from django.conf import settings

django.setup()
from django.contrib.admin import site
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

call_command("migrate", verbosity=0)
from gm_chat.settings import get_chat_settings, plain
from gm_chat.wiring import get_runtime

chat, runtime = get_chat_settings(), get_runtime()
print(repr(chat), str(chat), repr(runtime), repr(runtime.host), repr(runtime.limiter), vars(runtime).keys())
print(repr(chat.provider_config), repr(chat.plugins), repr(chat.provider_profiles))
provider = runtime.host.providers["openai"].build(plain(chat.provider_config))
print(repr(provider), repr(runtime.host.providers))
for name, spec in runtime.host.rate_limit_stores.items():
    print(repr(spec), repr(spec.build()))
user = get_user_model().objects.create_superuser("ada", password="x")
browser = Client(raise_request_exception=False)
browser.force_login(user)
answer = browser.post("/chat/", {"text": "Hello"}, content_type="application/json")
print("TURN", answer.status_code, answer.content.decode())
for model, admin in site._registry.items():
    if model._meta.app_label in {"gm_chat", "gm_chat_audit_logging"}:
        name = f"admin:{model._meta.app_label}_{model._meta.model_name}"
        page = browser.get(reverse(f"{name}_changelist"))
        print("PAGE", name, page.status_code, page.content.decode())
        for row in model.objects.all():
            page = browser.get(reverse(f"{name}_change", args=[row.pk]))
            print("PAGE", name, page.status_code, page.content.decode())
try:
    from django.db import connections

    connections["away"].ensure_connection()
except Exception:
    traceback.print_exc()
runtime.audit.close()
"""

URLS: Final = """\
from django.contrib import admin
from django.urls import include, path

urlpatterns = [path("admin/", admin.site.urls), path("chat/", include("gm_chat.urls"))]
"""


def project(folder: Path, settings: str = SETTINGS, **environment: str) -> DeployedProject:
    files = {"site_project/settings.py": settings, "site_project/urls.py": URLS, "probe.py": PROBE}
    more = {
        "GM_CHAT_PROVIDER_PROFILES__OTHER__PROVIDER": "openai",
        "GM_CHAT_PROVIDER_PROFILES__OTHER__TRUST_GROUP": "b",
        "GM_CHAT_PROVIDER_PROFILES__OTHER__PROVIDER_CONFIG__API_KEY": KEYS["environment"],
        "GM_CHAT_API_KEY": KEYS["variable"],
        **environment,
    }
    return DeployedProject(folder, files=files, environment=more)


def leaks(text: str) -> list[str]:
    """Where the keys come from that stand in a text, with some of what stands around each."""
    return [
        f"{place}: ...{text[max(0, text.index(key) - 200) : text.index(key) + 60]}..."
        for place, key in KEYS.items()
        if key in text
    ]


def test_no_command_shows_a_key(tmp_path: Path) -> None:
    chat = project(tmp_path)
    for command in (("check", "--deploy"), ("gm_chat_plugins",), ("gm_chat_plugins", "--json")):
        text = chat.run(*command)
        assert "Traceback" not in text, command
        assert "GM_CHAT_API_KEY" in text or "ratelimit_redis" in text, command
        assert leaks(text) == [], command


@pytest.mark.parametrize("store", ["database", "redis"])
def test_neither_does_a_failing_turn_nor_what_can_be_looked_at_then(tmp_path: Path, store: str) -> None:
    text = project(tmp_path, GM_CHAT_RATE_LIMIT__STORE=store).run(program="probe.py")
    assert 'TURN 200 {"' in text, text[-3000:]
    assert '"chat_error"' in text
    assert "correlation id" in text
    assert text.count("PAGE admin:gm_chat_chat") >= 4
    assert "PAGE admin:gm_chat_audit_logging_auditrecord 200" in text
    assert "OperationalError" in text
    assert leaks(text) == []


@pytest.mark.parametrize(
    "line",
    [
        f'GM_CHAT["provider_config"] = "{KEYS["invalid"]}"',
        f'GM_CHAT["provider_profiles"] = {{"x": {{"provider": 5, "provider_config": "{KEYS["invalid"]}"}}}}',
        f'GM_CHAT["provider_config"] = {{"api_key": 5, "base_url": "://:{KEYS["invalid"]}@"}}',
        f'GM_CHAT["plugins"] = {{"ratelimit_redis": {{"url": "http://:{KEYS["invalid"]}@127.0.0.1"}}}}',
        f'GM_CHAT["rate_limit"] = {{"trusted_proxies": ["{KEYS["invalid"]}"], "requests": "{KEYS["invalid"]}"}}',
        "",
    ],
)
def test_what_is_invalid_is_named_without_its_value(tmp_path: Path, line: str) -> None:
    broken = {} if line else {"GM_CHAT_PROVIDER_CONFIG": json.dumps({"api_key": KEYS["invalid"]})[:-1]}
    chat = project(tmp_path, f"{SETTINGS}{line}\n", **broken)
    text = "".join(chat.run(*command) for command in (("check",), ("gm_chat_plugins",)))
    assert "gm_chat.E" in text
    assert leaks(text) == []
