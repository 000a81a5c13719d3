"""The one exception for wrong settings, and the suggestion that goes with a wrong name."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["ChatConfigurationError", "suggestion"]


class ChatConfigurationError(ValueError):
    """The chat's settings cannot be used. The message says which key, in which source, and what is allowed.

    No message quotes a value that may be a secret. (Specification: "Settings, errors, and audit helpers".)
    """

    @classmethod
    def invalid_settings_mapping(cls) -> Self:
        """A settings source is no mapping."""
        return cls('GENERAL_MANAGER["CHAT"] and GM_CHAT must each be a mapping, e.g. GM_CHAT = {"enabled": True}.')

    @classmethod
    def invalid_permission(cls) -> Self:
        """``permission`` is neither a callable nor the path of one."""
        return cls(
            "The chat setting 'permission' must be None, a callable that takes (user, scope), "
            'or the dotted path of one, e.g. "myproject.chat.may_chat".'
        )

    @classmethod
    def missing_graphql_schema(cls) -> Self:
        """Chat is enabled, but there is no schema to talk about."""
        return cls("The chat has no GraphQL schema: no manager is exposed to it, or its schema could not be built.")

    @classmethod
    def unknown_allowed_mutations(cls, names: str) -> Self:
        """``allowed_mutations`` names mutations that the schema does not have."""
        return cls(f"The chat setting 'allowed_mutations' names mutations that the schema does not have: {names}.")

    @classmethod
    def invalid_confirm_mutations(cls, names: str) -> Self:
        """``confirm_mutations`` names mutations that are not allowed in the first place."""
        return cls(
            f"The chat setting 'confirm_mutations' names mutations that are not allowed: {names}. "
            "Add them to 'allowed_mutations' too, or leave them out."
        )

    @classmethod
    def unknown_fallback_profile(cls, hint: str) -> Self:
        """``fallback_profile`` names no entry of ``provider_profiles``."""
        return cls(
            f"The chat setting 'fallback_profile' names a profile that 'provider_profiles' does not define. {hint}"
        )

    @classmethod
    def invalid_planned_settings(cls, detail: str) -> Self:
        """``planned``, or the profiles that it uses, do not fit together."""
        return cls(f"The chat settings for planned turns are invalid: {detail}")

    @classmethod
    def invalid_turn_limit(cls, name: str, expected: str) -> Self:
        """A limit of rounds, retries or mutations is not of the expected kind."""
        return cls(f"The chat setting {name!r} must be {expected}.")


def suggestion(name: str, known: Iterable[str]) -> str:
    """Say which known name is nearest, or else which ones there are, as a sentence."""
    names = sorted(known)
    if near := get_close_matches(name, names, n=1):
        return f"Did you mean {near[0]!r}?"
    return f"Known: {', '.join(names)}." if names else "There is none."
