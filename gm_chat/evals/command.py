"""``python -m gm_chat.evals``: from a command line to a report and an exit status. ``docs/evals.md`` explains it."""

from __future__ import annotations

import os
import sys
import traceback
from typing import TYPE_CHECKING, Final

from gm_chat.evals.options import UsageError, parse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gm_chat.evals.options import Options

__all__ = ["FAILED", "INTERRUPTED", "ONLY_ERRORS", "PASSED", "UNUSABLE", "USAGE", "main"]

PASSED: Final = 0
FAILED: Final = 1
"""At least one case failed."""
USAGE: Final = 2
ONLY_ERRORS: Final = 3
"""No case failed, but some could not be run: nothing is known of those."""
UNUSABLE: Final = 4
"""Something could not be set up, loaded or written."""
INTERRUPTED: Final = 130
"""Ctrl-C; what was done by then is reported."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status. Wrong arguments end the process with :data:`USAGE`."""
    options = parse(argv)
    if options.settings is None and not os.environ.get("DJANGO_SETTINGS_MODULE"):
        return _refuse(
            "which project? Give --settings MODULE or set DJANGO_SETTINGS_MODULE; "
            "without a project: --settings gm_chat.evals.standalone --fixture toy"
        )
    try:
        _start_django(options)
        # Imported here: --help and wrong arguments need no Django.
        from gm_chat.evals import evaluating

        return evaluating.evaluate(options)
    except UsageError as error:
        return _refuse(str(error))
    except KeyboardInterrupt:
        _say("interrupted")
        return INTERRUPTED
    except ModuleNotFoundError as error:
        if error.name == "yaml":
            _say("evaluations need PyYAML. Type: pip install 'gm-chat[evals]'")
        else:
            traceback.print_exc()
        return UNUSABLE
    except (Exception, SystemExit) as error:  # noqa: BLE001 (a project's modules may raise anything)
        if _is_explained(error):
            _say(f"{type(error).__name__}: {error}")
        else:
            traceback.print_exc()
        return UNUSABLE


def _start_django(options: Options) -> None:
    if options.settings:
        os.environ["DJANGO_SETTINGS_MODULE"] = options.settings
    import django
    from django.apps import apps

    if not apps.ready:
        django.setup()
    if not apps.is_installed("gm_chat"):
        from django.core.exceptions import ImproperlyConfigured

        raise ImproperlyConfigured(f"{os.environ['DJANGO_SETTINGS_MODULE']} has no 'gm_chat' in INSTALLED_APPS")


def _is_explained(error: BaseException) -> bool:
    """Whether the message alone tells its reader what is wrong, and where."""
    from django.core.exceptions import ImproperlyConfigured

    from gm_chat.evals.configuring import VariantError
    from gm_chat.evals.dataset import DatasetError
    from gm_chat.evals.trace import TraceError
    from gm_chat.settings import ChatConfigurationError

    explained = ChatConfigurationError, DatasetError, ImproperlyConfigured, OSError, TraceError, VariantError
    return isinstance(error, explained)


def _refuse(message: str) -> int:
    _say(f"error: {message}")
    return USAGE


def _say(line: str) -> None:
    print(f"python -m gm_chat.evals: {line}", file=sys.stderr)  # noqa: T201 (a command's output)
