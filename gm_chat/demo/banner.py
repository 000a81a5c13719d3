"""What the demo says at start: who answers, where, who may log in, and three commands that work as printed."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Final

from gm_chat.demo.access import PASSWORD, USERS

if TYPE_CHECKING:
    from pathlib import Path

    from gm_chat.demo.choice import Choice

__all__ = ["banner", "curl_lines"]

NO_MODEL: Final = """\
NO LANGUAGE MODEL IS RUNNING. The provider "offline" reads plain list, count and show questions by rules and
answers them with the real tools from the real rows. For a model: --provider ollama, --provider openai (with
OPENAI_API_KEY), or --provider openai --base-url URL --model NAME for any OpenAI-compatible server."""


def banner(choice: Choice, url: str, cookies: Path, *, exposed: bool = False) -> str:
    """Compose the text. ``cookies`` is the file in which curl keeps the login; ``exposed``: others can connect."""
    model = choice.config.get("model")
    lines = [
        "gm-chat demo: parts, projects, suppliers, stock and orders of a builder of packaging machines",
        "",
        f"Provider: {choice.provider}{f', model {model}' if model else ''} ({choice.reason})",
    ]
    lines += choice.notes
    if not choice.has_model:
        lines += NO_MODEL.splitlines()
    lines += ["", f"Users (password of each: {PASSWORD})"]
    lines += [f"  {user.name:<9} {user.sees}" for user in USERS]
    if exposed:
        lines.append("Other machines can connect: everybody who reaches this one can log in as any of them.")
    lines += ["", f"Ask in a browser: {url}/", "", "Or log in and ask from a second terminal:"]
    lines += [f"  {line}" for line in curl_lines(url, cookies)]
    return "\n".join([*lines, "", f"Serving at {url}/ (Django admin: {url}/admin/). Ctrl-C stops it."])


def curl_lines(url: str, cookies: Path) -> list[str]:
    """Return the three commands: a login, a question answered at once, and one whose events come as they happen."""
    jar = shlex.quote(str(cookies))
    token = f"-H \"X-CSRFToken: $(awk '/csrftoken/ {{print $7}}' {jar})\""
    headers = f"-b {jar} {token} -H 'Content-Type: application/json'"
    return [
        f"curl -s -c {jar} -d 'username=engineer&password={PASSWORD}' {url}/demo/login/",
        f"curl -s {headers} -d {_body('Which parts use aluminium?')} {url}/chat/",
        f"curl -sN {headers} -d {_body('How many active projects do we have?')} {url}/chat/stream/",
    ]


def _body(text: str) -> str:
    return shlex.quote(json.dumps({"text": text}))
