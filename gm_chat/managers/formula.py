"""The little language of measures, as text: ``"sum(price * quantity) / count(distinct customer__id)"``.

::

    expression = term {("+" | "-") term}
    term       = factor {("*" | "/") factor}
    factor     = number | name | call | "(" expression ")" | "-" factor
    call       = name "(" ["distinct"] [expression {"," expression} | "*"] ")"

Names are paths such as ``customer__state`` or ``customer.state``. What a name or a function means, and whether it may
stand where it does, is decided by :mod:`gm_chat.managers.aggregate`; this module knows the syntax alone, and bounds
it: the text comes from a model, and nothing here recurses deeper than :data:`MAX_DEPTH`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Final, Literal, NoReturn

from gm_chat.managers.spelling import shown
from gm_chat.plugin import ToolError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Binary", "Call", "Name", "Node", "Number", "parse_formula"]

MAX_TEXT: Final = 500
MAX_DEPTH: Final = 12
MAX_TOKENS: Final = 120
MAX_DIGITS: Final = 16
"""Of a number, its point included: what every database computes with exactly."""
_TOKEN: Final = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d+)?)|(?P<name>[^\W\d]\w*(?:\.[^\W\d]\w*)*)|(?P<sign>[-+*/(),]))"
)
Operator = Literal["+", "-", "*", "/"]


@dataclass(frozen=True, slots=True)
class Number:
    """A number as written."""

    value: Decimal


@dataclass(frozen=True, slots=True)
class Name:
    """A path to a field, or the name of another measure."""

    text: str


@dataclass(frozen=True, slots=True)
class Binary:
    """Two operands and what is done with them."""

    operator: Operator
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Call:
    """A function, its name in lower case. ``count()`` and ``count(*)`` have no arguments."""

    function: str
    arguments: tuple[Node, ...]
    distinct: bool = False


Node = Number | Name | Binary | Call


def parse_formula(text: str, what: str) -> Node:
    """Parse one formula; ``what`` names it in the ``ToolError`` that a mistake raises."""
    if len(text) > MAX_TEXT:
        raise ToolError("too_large", f"{what}: a formula of more than {MAX_TEXT} characters")
    return _Parser(text, what).whole()


class _Parser:
    """Recursive descent over a list of tokens; one token of look-ahead."""

    def __init__(self, text: str, what: str) -> None:
        self._text = text
        self._what = what
        self._tokens = list(self._scan())
        if len(self._tokens) > MAX_TOKENS:  # also bounds how deep "1 - 1 - 1 ..." nests
            raise ToolError("too_large", f"{what}: a formula of more than {MAX_TOKENS} words and signs")
        self._next = 0

    def whole(self) -> Node:
        node = self._expression(0)
        if self._next < len(self._tokens):
            self._fail(f"{shown(self._tokens[self._next][1])} is not expected there")
        return node

    def _scan(self) -> Iterator[tuple[str, str]]:
        position = 0
        text = self._text.rstrip()
        while position < len(text):
            found = _TOKEN.match(text, position)
            if found is None or found.lastgroup is None:
                self._fail(f"{shown(text[position:].lstrip()[:20])} cannot be read")
            yield found.lastgroup, found[found.lastgroup]
            position = found.end()

    def _peek(self) -> str | None:
        return self._tokens[self._next][1] if self._next < len(self._tokens) else None

    def _accept(self, *signs: str) -> str | None:
        if self._next < len(self._tokens) and self._tokens[self._next][1] in signs:
            self._next += 1
            return self._tokens[self._next - 1][1]
        return None

    def _expect(self, sign: str) -> None:
        if self._accept(sign) is None:
            self._fail(f"{sign!r} is missing" + (f" before {shown(self._peek())}" if self._peek() else " at the end"))

    def _expression(self, depth: int) -> Node:
        if depth > MAX_DEPTH:
            raise ToolError("too_large", f"{self._what}: a formula nested deeper than {MAX_DEPTH} levels")
        node = self._term(depth)
        while (sign := self._accept("+", "-")) is not None:
            node = Binary("+" if sign == "+" else "-", node, self._term(depth))
        return node

    def _term(self, depth: int) -> Node:
        node = self._factor(depth)
        while (sign := self._accept("*", "/")) is not None:
            node = Binary("*" if sign == "*" else "/", node, self._factor(depth))
        return node

    def _factor(self, depth: int) -> Node:
        negative = False
        while self._accept("-") is not None:
            negative = not negative
        node = self._operand(depth)
        return Binary("-", Number(Decimal(0)), node) if negative else node

    def _operand(self, depth: int) -> Node:
        if self._next == len(self._tokens):
            self._fail("it ends where a field, a number or a function is expected")
        kind, text = self._tokens[self._next]
        self._next += 1
        if kind == "number":
            if len(text) > MAX_DIGITS:
                raise ToolError("too_large", f"{self._what}: a number of more than {MAX_DIGITS} digits")
            return Number(Decimal(text))
        if kind == "name":
            return self._call(text, depth) if self._accept("(") else Name(text)
        if text != "(":
            self._fail(f"{shown(text)} stands where a field, a number or a function is expected")
        node = self._expression(depth + 1)
        self._expect(")")
        return node

    def _call(self, name: str, depth: int) -> Call:
        function = name.lower()
        if self._accept(")"):
            return Call(function, ())
        if self._accept("*"):
            self._expect(")")
            return Call(function, ())
        distinct = False
        if (self._peek() or "").lower() == "distinct" and self._next + 1 < len(self._tokens):
            # "distinct" may be a field's name as well: it is the word only before something that it can belong to.
            distinct = self._tokens[self._next + 1][0] == "name" or self._tokens[self._next + 1][1] == "("
            self._next += distinct
        arguments = [self._expression(depth + 1)]
        while self._accept(","):
            arguments.append(self._expression(depth + 1))
        self._expect(")")
        return Call(function, tuple(arguments), distinct)

    def _fail(self, reason: str) -> NoReturn:
        raise ToolError(
            "invalid_formula",
            f"{self._what}: {reason} in {shown(self._text)}",
            allowed='such as "sum(price)", "count()", "count(distinct customer__id)", "sum(price) - sum(cost)"',
        )
