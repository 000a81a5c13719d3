"""What the host knows about plugins and what went wrong with them, and the guard that runs foreign code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Failed", "Origin", "PluginRecord", "Problem", "Severity", "State", "attempt", "one_line"]

T = TypeVar("T")
_LONGEST: Final = 1_000
Severity = Literal["error", "warning"]
State = Literal["active", "disabled", "refused", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One finding about one plugin, fit for an operator's eyes: it never quotes a configured value.

    ``hook`` is ``None`` when the plugin as a whole is meant. An error means that something an operator asked for is
    not there; a warning, that the chat works without it.
    """

    plugin: str
    distribution: str
    version: str
    severity: Severity
    message: str
    hook: str | None = None
    hint: str | None = None

    def __str__(self) -> str:
        """One line: who, where, what, and what to do."""
        where = f", {self.hook}" if self.hook else ""
        hint = f" {self.hint}" if self.hint else ""
        return f"plugin {self.plugin!r} ({self.distribution} {self.version}){where}: {self.message}{hint}"


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a plugin comes from: its entry-point name, its distribution and that one's version."""

    plugin: str
    distribution: str
    version: str

    def problem(self, severity: Severity, message: str, *, hook: str | None = None, hint: str | None = None) -> Problem:
        """A finding about this plugin."""
        return Problem(
            plugin=self.plugin,
            distribution=self.distribution,
            version=self.version,
            severity=severity,
            message=message,
            hook=hook,
            hint=hint,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginRecord:
    """A plugin that was found.

    ``state``: ``active``; ``disabled`` by the allow or block list, and never imported; ``refused`` because it breaks
    the contract; ``failed`` while it was imported. ``hooks`` are the hooks that it implements, sorted; a refused
    plugin's include those that it most likely meant.
    """

    name: str
    distribution: str
    version: str
    state: State
    hooks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Failed:
    """What foreign code raised."""

    error: BaseException

    def __str__(self) -> str:
        """Its type and message, in one printable line of bounded length."""
        return one_line(f"{type(self.error).__name__}: {self.text}")

    @property
    def text(self) -> str:
        """The message as it is; a ``__str__`` that fails is foreign code too."""
        message = attempt(lambda: str(self.error))
        return (
            f"(its message cannot be read: {type(message.error).__name__})" if isinstance(message, Failed) else message
        )


def one_line(text: str) -> str:
    """Foreign text fit for a terminal and a log: no line ends, control characters or lone surrogates."""
    line = " ".join(text[: 2 * _LONGEST].split())
    printable = "".join(letter if letter.isprintable() else "\ufffd" for letter in line)
    return printable if len(text) <= _LONGEST else printable[:_LONGEST] + "…"


def attempt(call: Callable[[], T]) -> T | Failed:
    """Run foreign code and hand back its result or what it raised. Only ``KeyboardInterrupt`` gets through.

    A module may call ``sys.exit()`` while it is imported; that ends a script, and must not end a server.
    """
    try:
        return call()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - foreign code may raise SystemExit; the caller reports what it was
        return Failed(error)
