"""What a model, its database or a project's own mutation says of a write, in words that the chat's model can use."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from django.core.exceptions import NON_FIELD_ERRORS, PermissionDenied, ValidationError
from django.db import DataError, IntegrityError, models

from gm_chat.plugin import ToolError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gm_chat.managers.api import MutationCall
    from gm_chat.managers.binding import Binding

__all__ = ["translated"]

_TAKEN: Final = "Another row has these values already."


@contextmanager
def translated(call: MutationCall, binding: Binding) -> Iterator[None]:
    """Raise ``ToolError`` for what refuses a write: ``validation_failed`` (``fields``: messages by input), or
    ``permission_denied``, whose reason is the project's. Everything else passes: it is nobody's answer.
    """
    try:
        yield
    except ValidationError as error:
        raise _invalid(error, binding, call) from error
    except PermissionDenied as error:
        raise ToolError("permission_denied", f"you may not run {call.mutation.name} like this") from error
    except (models.ProtectedError, models.RestrictedError) as error:
        raise ToolError("validation_failed", "it cannot be deleted: other data still refers to it") from error
    except (IntegrityError, DataError) as error:
        raise ToolError(
            "validation_failed", "the database refuses it: a value is taken, missing, or out of range"
        ) from error


def _names_hidden(fault: ValidationError, name: str, names: Mapping[str, str], known: set[str]) -> bool:
    """Whether Django's message about values that are taken names a column that the actor is not shown."""
    match fault.code:
        case "unique" | "unique_for_date" | "unique_for_month" | "unique_for_year":
            return name not in known
        case "unique_together":
            return not known.issuperset(names.get(item, item) for item in (fault.params or {}).get("unique_check", ()))
    return False


def _invalid(error: ValidationError, binding: Binding, call: MutationCall) -> ToolError:
    """Messages by input name; what concerns no input of the call, or several, stands in the message alone."""
    by_field: Mapping[str, list[ValidationError]] = (
        error.error_dict if hasattr(error, "error_dict") else {NON_FIELD_ERRORS: error.error_list}
    )
    names = {query_name: name for name, query_name in binding.columns.items()}
    names |= {relation.query_name: name for name, relation in binding.relations.items()}
    known = {item.name for item in call.mutation.inputs}
    fields: dict[str, list[str]] = {}
    parts: list[str] = []
    for field, faults in by_field.items():
        name = names.get(field, field)
        messages = [_TAKEN if _names_hidden(fault, name, names, known) else fault.messages[0] for fault in faults]
        if name in known:
            fields[name] = messages
            parts.append(f"{name}: {' '.join(messages)}")
        else:  # a column that the actor is not shown is not named either
            parts.append(" ".join(messages))
    return ToolError("validation_failed", " ".join(parts), fields=fields)
