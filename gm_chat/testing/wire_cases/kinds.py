"""What goes wrong on the wires of language models, kind by kind.

Each kind was reported by somebody for some server, SDK or gateway; the cases of the four formats show what it looks
like there. Whoever writes an adapter for a fifth format finds here what to look for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["KINDS"]

_ENDS: Final = {
    "no-end": "The stream ends without its terminal marker, after calls that look complete: none of them is run.",
    "end-without-reason": "The transport's own end marker comes, but the answer's reason to end never did.",
    "end-without-blank-line": "The very last line lacks what should follow it.",
    "page": "Status 200 with a web page: a login, a captive portal, a proxy's notice.",
    "empty-body": "Status 200 and not a byte.",
    "not-a-stream": "The server ignores that a stream was asked for and sends one whole answer.",
    "broken-json": "A line in the middle of the stream is no JSON.",
    "empty-answer": "A complete stream without text or call: the model had nothing to say.",
}
_FRAMING: Final = {
    "comment-lines": "Comments between the events keep the connection alive.",
    "crlf": "Lines end in CR LF.",
    "no-space-after-colon": "The field's colon is not followed by a blank.",
    "line-separators": "U+2028, U+2029 and U+0085 stand unescaped in a text: they end no line.",
    "multi-line-event": "The JSON of one event is spread over several lines.",
    "large-event": "One event is longer than any buffer that a library sets aside for a line.",
    "unknown-events": "Events, keys and blocks that no document mentions yet are passed over.",
}
_CALLS: Final = {
    "late-id": "The id of a call comes with a later fragment than its first, or is sent again as an empty text.",
    "no-id": "Calls have no id: the adapter makes one for each.",
    "no-index": "Fragments do not say which call they belong to: ids tell, or there is only one call.",
    "one-index": "Several calls have the same index, but ids of their own.",
    "ambiguous": "A fragment could belong to two calls: an error, never a guess.",
    "repeated-id": "Two calls of one answer have the same id: both are run.",
    "interleaved": "The fragments of two calls take turns.",
    "fragments-together": "The opening of a call and its first argument fragment come in one event.",
    "empty-name": "Later fragments repeat the name as an empty text.",
    "nameless-call": "A call names no tool.",
    "late-calls": "The calls come with the event that ends the stream.",
    "text-and-call": "The model says something before it calls.",
    "call-as-text": "The model writes a call as text: it stays text, unless the configuration says otherwise.",
    "foreign-call": "A call that the service runs itself stands among the blocks: it is none of ours.",
}
_ARGUMENTS: Final = {
    "no-arguments": "A call without arguments: an empty text, null, nothing at all.",
    "whole-arguments": "The arguments come whole, with the opening of the call, where fragments are the rule.",
    "arguments-as-text": "The arguments are an encoded text where an object is the rule.",
    "arguments-as-object": "The arguments are an object where an encoded text is the rule.",
    "not-an-object": "The arguments are JSON, but no object.",
    "not-json": "The arguments are no JSON: Python's quotes, two objects, text after the object.",
    "duplicate-key": "A key stands twice in the arguments: which of two ids is to be deleted?",
    "not-a-number": "NaN, Infinity, or a number that overflows to it.",
    "cut-off": "The output limit cut the arguments: the model is told, nothing is run, nothing is repaired.",
    "cut-off-in-silence": "The arguments are cut, but the reason to end says that all is well.",
}
_REASONS: Final = {
    "stop-after-calls": "The reason to end is the ordinary one although there are calls.",
    "two-reasons": "The reason to end is sent twice, the second time the ordinary one.",
    "empty-reason": "Each event carries an empty reason to end, which ends nothing.",
    "unknown-reason": "A reason to end that no document mentions.",
    "length-before-text": "The output limit was reached by thinking, before a word was said.",
    "filtered": "A content filter left nothing of the answer: an error, not an empty answer.",
    "filtered-after-text": "A content filter stopped the answer in the middle.",
    "blocked-prompt": "The question itself was blocked: there is no candidate at all.",
    "refused": "The model declined.",
    "malformed-call": "The service found the model's call malformed; a call that it sends all the same is not run.",
    "window-exceeded": "The context window was full before the answer was complete.",
    "error-reason": "The reason to end is an error, and nothing else tells of one.",
}
_ERRORS: Final = {
    "error-first": "Status 200, and the first event is an error.",
    "error-in-stream": "An error in the middle of the answer.",
    "overloaded-in-stream": "The service says in the stream that it is overloaded.",
    "quota-in-stream": "The service says in the stream that the quota is used up.",
    "untyped-error": "An error without type or code: a message, or bare text.",
    "error-with-choices": "The event of an error looks like any other and carries an empty piece of the answer.",
    "retry-after-seconds": "Too many requests; come back in so many seconds.",
    "retry-after-date": "Too many requests; come back at a date.",
    "retry-after-rubbish": "Too many requests; the hint says nothing usable.",
    "retry-after-in-body": "Too many requests; the hint stands in the body.",
    "overloaded": "The service refuses as it is overloaded.",
    "too-long": "The conversation does not fit the model's context window.",
    "error-not-json": "The body of an error is no JSON, or not the documented one.",
}
_USAGE: Final = {
    "usage-repeated": "Usage is reported more than once and is cumulative: the last report counts.",
    "usage-details": "Cached and thinking tokens are reported, and counted as the neutral usage defines it.",
    "usage-missing": "No usage is reported: unknown is not free.",
    "usage-null": "Usage is reported as null.",
    "usage-in-part": "One of the two counts is missing.",
    "usage-after-end": "Usage comes in an event of its own after the end.",
    "prompt-cut": "The server cut the prompt silently, and with it tools and instructions: the operator is told.",
    "usage-lost": "The connection breaks after the end and before the usage: the answer is complete.",
}
_CONTENT: Final = {
    "null-content": "Pieces are null, empty or absent where the format promises them.",
    "wrong-type": "A piece is of another type than the format has.",
    "thinking": "Thinking is not part of the answer.",
    "signature-returns": "What the service signed goes back to it unchanged, on the same part.",
    "empty-text": "Text blocks that are empty.",
}
KINDS: Final[Mapping[str, str]] = {
    **_ENDS,
    **_FRAMING,
    **_CALLS,
    **_ARGUMENTS,
    **_REASONS,
    **_ERRORS,
    **_USAGE,
    **_CONTENT,
}
"""Name -> what goes wrong, in the order in which tables show them."""
