"""Taking secrets out of JSON values and of text. Pure, and linear in the length of what it is given.

A secret is recognised in two ways. By its key, where a configured term must be a whole word of it: ``client_secret``,
``apiKey`` and ``API-KEY`` are secret for ``secret`` and ``key``; ``tokenizer``, ``monkey`` and ``input_tokens`` are not
for ``token`` and ``key``. And by its look, inside any text: what stands after such a key (``password: x``,
``--api-key x``, ``<secret>x</secret>``), headers that carry credentials, passwords in URLs, private keys, and the keys
of vendors who mark them. Where the two ends of a secret cannot be told apart from what surrounds it, more is taken
rather than less. (Specification: "Audit settings".)
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

__all__ = ["REDACTED", "is_secret_key", "redact", "redact_text"]

REDACTED: Final = "[redacted]"

Terms: TypeAlias = tuple[str, ...]
"""What the setting ``audit["redact_fields"]`` names."""

# --- keys -------------------------------------------------------------------------------------------------------

_ALWAYS: Final = (
    *("passwd", "passphrase", "passcode", "pwd", "passwords", "secrets", "credentials", "passwort", "kennwort"),
    *("contraseña", "mot de passe", "api keys", "access keys", "private keys", "secret keys", "api tokens"),
    *("access tokens", "refresh tokens", "auth tokens", "session tokens", "sessionid", "phpsessid"),
)  # fmt: skip
"""What is secret whatever is configured: spellings of the default terms that are never innocent, unlike ``tokens``."""

_ENDS: Final = frozenset({"password", "secret", "token", "credential"})
"""Terms that no innocent word ends with, so that ``pgpassword`` counts, unlike ``key``: ``monkey``."""

_KEYS: Final = tuple(
    f"{kind}key"
    for kind in ("api", "access", "secret", "private", "auth", "ssh", "signing", "encryption", "master", "account")
)
"""Words that ``key`` makes when it is written in one with what it opens."""

_HEADERS: Final = frozenset({"authorization", "proxy-authorization", "cookie", "set-cookie"})

_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")
_LONGEST_CACHED: Final = 128


def is_secret_key(key: str, terms: Terms) -> bool:
    """Whether one of ``terms`` stands in the key as whole words, or the key is secret by nature."""
    return _names_a_secret(key, terms) or key.lower() in _HEADERS


def _names_a_secret(key: str, terms: Terms) -> bool:
    judge = _judged if len(key) <= _LONGEST_CACHED else _judged.__wrapped__
    return judge(key, terms)


@functools.lru_cache(maxsize=4096)
def _judged(key: str, terms: Terms) -> bool:
    words = _words(key)
    if any(_contains(words, _words(term)) for term in (*terms, *_ALWAYS)):
        return True
    ends = tuple(term.lower() for term in terms if term.lower() in _ENDS) + _KEYS
    return "".join(words).rstrip("0123456789").endswith(ends) or any(word.endswith(ends) for word in words)


def _words(name: str) -> tuple[str, ...]:
    return tuple(word.lower() for word in _WORD.findall(name))


def _contains(words: tuple[str, ...], term: tuple[str, ...]) -> bool:
    length = len(term)
    return length > 0 and any(words[start : start + length] == term for start in range(len(words) - length + 1))


# --- values -----------------------------------------------------------------------------------------------------


def redact(value: Any, terms: Terms) -> Any:
    """A copy of a JSON value without its secrets."""
    match value:
        case Mapping():
            told = _tells_of_a_secret(value, terms)
            return {
                _redact_key(key, terms): REDACTED
                if is_secret_key(key, terms) or (told and key.lower() == "value")
                else redact(item, terms)
                for key, item in value.items()
            }
        case list():
            return [redact(item, terms) for item in value]
        case str():
            return redact_text(value, terms)
        case _:
            return value


def _redact_key(key: str, terms: Terms) -> str:
    return _cleaned_key(key, terms) if len(key) <= _LONGEST_CACHED else redact_text(key, terms)


@functools.lru_cache(maxsize=4096)
def _cleaned_key(key: str, terms: Terms) -> str:
    return redact_text(key, terms)


def _tells_of_a_secret(value: Mapping[str, Any], terms: Terms) -> bool:
    """Whether it is a pair in words, such as ``{"name": "password", "value": ...}``."""
    names = (value.get(key) for key in ("name", "key", "field", "header"))
    return "value" in value and any(isinstance(name, str) and is_secret_key(name, terms) for name in names)


# --- text -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Look:
    """What a kind of secret looks like. ``openings``, in lower case, are what such a text holds at the least."""

    openings: tuple[str, ...]
    pattern: re.Pattern[str]
    replacement: str = r"\0"
    r"""``\0`` stands for :data:`REDACTED`."""

    def hide(self, text: str, lowered: str) -> str:
        if not any(opening in lowered for opening in self.openings):
            return text
        return self.pattern.sub(self.replacement.replace(r"\0", REDACTED), text)


def _vendor(pattern: str, *openings: str) -> _Look:
    return _Look(openings, re.compile(rf"(?<![A-Za-z0-9])(?:{pattern})"))


_HEAD: Final = r"\b((?:proxy-)?authorization|(?:set-)?cookie)(\\*[\"']?[ \t]*(?:[:=]|%3[ad])[ \t]*\\*[\"']?)"
_SCHEME: Final = r"(?:(?:bearer|basic|digest|token|negotiate|apikey|aws4-hmac-sha256)[ \t]+)?"
# A word in lower case after "bearer" is English, not a token.
_ENGLISH: Final = r"(?![a-z]{1,15}\.?(?:[\s\"',;:)!?]|$))"
_NOT_A_WORD: Final = r"(?=\S{0,80}[\d!@#$%^&*_+~])"
_SAID: Final = r"pass ?(?:word|phrase|code|wd)|pwd"
_IS: Final = r"\s{1,5}(?:is|was|ist|lautet)\s{1,5}"

_LOOKS: Final = (
    _Look(
        ("private key",),
        re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY\b.*?(?:-----END[^-\n]*(?:-----)?|\Z)", re.DOTALL),
    ),
    _Look(
        ("authorization", "cookie"),
        re.compile(rf"{_HEAD}({_SCHEME})(?:[^\r\n\"'\\]|(?<==)[\"'][^\"'\r\n]*[\"'])+", re.IGNORECASE),
        r"\1\2\3\0",
    ),
    _Look(("bearer",), re.compile(rf"\b((?i:bearer)\s{{1,20}}){_ENGLISH}[\w.~+/=-]{{6,}}"), r"\1\0"),
    _Look(("://",), re.compile(r"(://[^\s/?#:@\"]*+:)[^\s/?#\"]*@"), r"\1\0@"),
    _Look(
        ("://",),
        re.compile(r"(://[^\s/?#:@\"]*+:)(?!\d{1,5}(?:[/?#\s\"]|$)|\[redacted\])[^\s@\"]{1,200}@"),
        r"\1\0@",
    ),
    _Look(("://",), re.compile(r"(://)(?!\[redacted\])[^\s/?#:@\"]{20,200}@"), r"\1\0@"),
    _Look(("hooks.slack",), re.compile(r"(hooks\.slack\.com/services/)[\w/]+"), r"\1\0"),
    _Look(("login",), re.compile(r"(\blogin\s{1,20}\S{1,200}\s{1,20}password\s{1,20})\S+"), r"\1\0"),  # .netrc
    _Look(("-u", "--user"), re.compile(r"((?<!\S)(?:-u|--user)[ =][\"']?[^\s:\"']{1,200}:)[^\s\"']+"), r"\1\0"),  # curl
    _Look(
        ("pass", "pwd"),
        re.compile(rf"\b((?:{_SAID})(?:{_IS}|\s{{1,5}}))([\"'`])[^\"'`\n]{{1,200}}\2", re.IGNORECASE),
        r"\1\2\0\2",
    ),
    _Look(
        ("pass", "pwd", "key", "secret", "token"),
        re.compile(rf"\b((?:{_SAID}|api[ -]?key|secret|token){_IS}){_NOT_A_WORD}\S+", re.IGNORECASE),
        r"\1\0",
    ),
    _vendor(r"sk-[\w-]{16,}", "sk-"),  # OpenAI, Anthropic and most who came after them
    _vendor(r"(?:sk|rk)_(?:live|test)_\w{10,}|whsec_[\w+/=]{16,}", "k_live_", "k_test_", "whsec_"),  # Stripe
    _vendor(r"gh[opusr]_\w{16,}|github_pat_\w{16,}", "gho_", "ghp_", "ghu_", "ghs_", "ghr_", "github_pat_"),
    _vendor(r"gl(?:pat|ptt|dt|rt)-[\w.-]{16,}", "glpat-", "glptt-", "gldt-", "glrt-"),  # GitLab
    _vendor(r"xox[a-z]-[\w-]{8,}|xapp-[\w-]{8,}", "xox", "xapp-"),  # Slack
    _vendor(r"(?:AKIA|ASIA)[A-Z0-9]{12,}", "akia", "asia"),  # AWS
    _vendor(r"AIza[\w-]{20,}|ya29\.[\w.-]{16,}|GOCSPX-[\w-]{16,}", "aiza", "ya29.", "gocspx-"),  # Google
    _vendor(r"eyJ[\w-]{6,}(?:\.[\w-]*+){1,4}", "eyj"),  # JSON web tokens, encrypted ones included
    _vendor(r"(?:hf|npm|gsk|r8|shpat)_\w{16,}|lin_api_\w{16,}", "hf_", "npm_", "gsk_", "r8_", "shpat_", "lin_api_"),
    _vendor(r"(?:pypi|xai|pplx)-[\w-]{16,}|dapi[0-9a-f]{32}", "pypi-", "xai-", "pplx-", "dapi"),
    _vendor(r"SG\.[\w-]{16,}\.[\w-]{16,}|\d{8,10}:AA[\w-]{30,}", "sg.", ":aa"),  # SendGrid, Telegram
)

_OPENINGS: Final = tuple({opening for look in _LOOKS for opening in look.openings})

_SIGN: Final = r"(?:=>|:=|={1,3}|:|%3[dDaA])"
_ASSIGNED: Final = re.compile(
    rf"(?<![\w-])(?P<key>[\w-]++)\\*[\"'`]?\]?[ \t]*+(?P<sign>{_SIGN})(?:\s*+(?=\\*[\"'])|[ \t*`]*+)"
)
_FLAG: Final = re.compile(r"(?<![\w-])--(?P<key>[\w-]++)[ \t]{1,20}(?=[^\s-])")
_PAIR: Final = re.compile(
    r"\\*[\"'](?:name|key|field|header)\\*[\"']\s*:\s*\\*[\"'](?P<key>[\w-]++)\\*[\"']\s*,\s*\\*[\"']value\\*[\"']\s*:\s*"
)
_ELEMENT: Final = re.compile(r"<(?:[\w.-]+:)?(?P<key>[\w.-]+)(?:\s[^<>]*+)?>(?:<!\[CDATA\[)?")
_QUOTED: Final = re.compile(
    r"(?P<open>\\\")(?:[^\\\"]|\\\\\\?.|\\[^\"\\])*+(?:\\\")?"  # a text in a JSON text in a JSON text
    r"|(?P<deeper>\\+[\"'])(?:(?!(?P=deeper)).)*+(?P=deeper)?"
    r"|(?P<double>\")(?:[^\"\\]|\\.)*+\"?"
    r"|(?P<single>')(?:[^'\\]|\\.)*+'?",
    re.DOTALL,
)
_REST_OF_LINE: Final = re.compile(r"[|>][+-]?[ \t]*(?:\r?\n[ \t]+[^\n]*+)++|[^\r\n]+")
_BARE: Final = re.compile(
    r"(?:[^\s&;,\"'<]|[&;,](?!\s|$|[\w.\[\]%-]{1,64}\\*[\"']?\s?[=:])|[\"'](?=\w)|<(?!/))+"
)  # fmt: skip
_CONTENT: Final = re.compile(r"[^<]+")
_BEFORE_A_KEY: Final = " \t>*#-+\"'`|"
_INDENT: Final = 32


def redact_text(text: str, terms: Terms) -> str:
    """The text without what looks like a secret in it; a text that is JSON, without what its keys say is secret."""
    lowered = text.lower()
    keyed = any(word in lowered for word in _words_of(terms))
    if not keyed and not any(word in lowered for word in _OPENINGS):  # nearly all values of a large result
        return text
    if text.lstrip()[:1] in {"{", "["}:
        parsed = _parsed(text)
        if parsed is not None:
            cleaned = redact(parsed, terms)
            return text if cleaned == parsed else json.dumps(cleaned, ensure_ascii=False)
    for look in _LOOKS:
        text = look.hide(text, lowered)
    if keyed:
        for where in _WHERE:
            text = _hide(text, terms, *where)
    return text


@functools.lru_cache(maxsize=16)
def _words_of(terms: Terms) -> tuple[str, ...]:
    """What every secret key holds one of, in lower case."""
    words = {_words(term)[0] for term in (*terms, *_ALWAYS, *_KEYS) if _words(term)} | _HEADERS
    return tuple(word for word in words if not any(other in word for other in words - {word}))


def _parsed(text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_unique)
    except (ValueError, RecursionError):
        return None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):  # one value would hide behind the other
        raise ValueError("a key stands twice")
    return made


def _hide(
    text: str,
    terms: Terms,
    head: re.Pattern[str],
    is_secret: Callable[[str, Terms], bool],
    value_after: Callable[[str, re.Match[str]], re.Match[str] | None],
) -> str:
    """Hide the values that stand after the secret ones of the keys that ``head`` finds."""
    parts: list[str] = []
    done = 0
    for found in head.finditer(text):
        if found.start() < done or not is_secret(found["key"], terms):
            continue
        value = value_after(text, found)
        if value is not None:
            quote = value["open"] or value["deeper"] or value["double"] or value["single"] if value.lastgroup else ""
            parts += (text[done : value.start()], quote, REDACTED, quote)
            done = value.end()
    return "".join((*parts, text[done:]))


def _assigned_value(text: str, found: re.Match[str]) -> re.Match[str] | None:
    quoted = _QUOTED.match(text, found.end())
    if quoted is not None:
        return quoted
    whole_line = found["sign"] == ":" and _opens_a_line(text, found.start())
    return (_REST_OF_LINE if whole_line else _BARE).match(text, found.end())


def _token(text: str, found: re.Match[str]) -> re.Match[str] | None:
    return _QUOTED.match(text, found.end()) or _BARE.match(text, found.end())


def _content(text: str, found: re.Match[str]) -> re.Match[str] | None:
    return _CONTENT.match(text, found.end())


def _opens_a_line(text: str, start: int) -> bool:
    before = text[max(0, start - _INDENT) : start]
    line_end = before.rfind("\n")
    return (line_end >= 0 or start <= _INDENT) and not before[line_end + 1 :].strip(_BEFORE_A_KEY)


_WHERE: Final = (
    (_PAIR, is_secret_key, _token),
    (_ASSIGNED, _names_a_secret, _assigned_value),  # headers are among the looks, which leave the scheme
    (_FLAG, is_secret_key, _token),
    (_ELEMENT, is_secret_key, _content),
)
"""What a value may stand after, which of that is secret, and how far the value goes."""
