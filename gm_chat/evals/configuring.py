"""Under which settings the cases are run: what is configured, and what the command line lays over it.

Weakest first: what is configured, environment variables included; what the fixture's cases count on; the provider of
the command line; a variant's file; the model of the command line. Each is merged deeply into what stands below, and
whoever names another provider starts with an empty ``provider_config``: no key of one vendor reaches another.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import yaml
from django.test.utils import override_settings

from gm_chat.encoding import canonical_json
from gm_chat.evals.options import UsageError
from gm_chat.settings import canonical_path, configured_values
from gm_chat.settings.environment import PREFIX
from gm_chat.settings.model import ChatSettings
from gm_chat.settings.sources import overlay

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from gm_chat.evals.fixtures.installing import Fixture
    from gm_chat.evals.options import Options

__all__ = ["Variant", "VariantError", "configured", "variants_of"]

_NO_WRITES: Final[Mapping[str, Any]] = {"allowed_mutations": [], "confirm_mutations": []}


class VariantError(ValueError):
    """A variant's file cannot be used. The message names it."""


@dataclass(frozen=True, slots=True)
class Variant:
    """Settings under which all cases are run. ``name`` is empty where there is one only.

    ``values`` are the chat's settings, whole; ``sha256`` is of what was laid over those that are configured.
    """

    name: str
    values: Mapping[str, Any] = field(repr=False)
    sha256: str


def variants_of(options: Options, fixture: Fixture | None) -> list[Variant]:
    """What is to be run side by side: each variant's file, with each provider of ``--compare``.

    Raises :class:`VariantError`, and :class:`~gm_chat.evals.options.UsageError` for a provider that is named twice.
    """
    below = {} if fixture is None else _of_fixture(fixture)
    files = [(name, _read(name, path)) for name, path in options.variants] or [("", {})]
    providers = options.compare or (options.provider,)
    for name, changes in files:
        if "provider" in changes and providers != (None,):
            raise UsageError(f"--variant {name} names a provider itself: leave --provider and --compare out")
    return [
        _variant(_name(name, provider if options.compare else None), below, changes, provider, options)
        for name, changes in files
        for provider in providers
    ]


def _variant(
    name: str, below: Mapping[str, Any], changes: Mapping[str, Any], provider: str | None, options: Options
) -> Variant:
    values = overlay(configured_values(), below)
    layers: list[Mapping[str, Any]] = [changes]
    default = ChatSettings.model_fields["provider"].default
    if provider is not None and canonical_path(provider) != canonical_path(values.get("provider", default)):
        layers = [{"provider": provider}, *layers]
    if options.model is not None:
        layers.append({"provider_config": {"model": options.model}})
    if options.fixture is None and not options.allow_writes:
        layers.append(_NO_WRITES)
    for layer in layers:
        values = overlay(values, layer)
    return Variant(name, values, hashlib.sha256(canonical_json([below, *layers]).encode()).hexdigest())


def _of_fixture(fixture: Fixture) -> dict[str, Any]:
    """The project's own permission and catalog know neither the fixture's users nor its managers."""
    return {"permission": None, "planned": {"catalog": None}, **fixture.chat_settings}


def _name(name: str, provider: str | None) -> str:
    return " ".join(filter(None, (name, provider)))


def _read(name: str, path: Path) -> dict[str, Any]:
    where = f"--variant {name}: {path}"
    try:
        raw = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise VariantError(f"{where} cannot be read: {error.strerror or error}") from error
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise VariantError(f"{where} is no YAML: {error}") from error
    if not isinstance(raw, dict) or not all(isinstance(key, str) for key in raw):
        raise VariantError(f"{where} must be a mapping of chat settings, not {type(raw).__name__}")
    return raw


@contextmanager
def configured(variant: Variant) -> Iterator[None]:
    """Let a variant's settings be the chat's while the block runs, for providers that read them themselves, too.

    What environment variables say is in the variant already; they would come before what it changes.
    """
    held = {name: os.environ.pop(name) for name in list(os.environ) if name.upper().startswith(PREFIX)}
    try:
        with override_settings(GM_CHAT=variant.values):
            yield
    finally:
        os.environ.update(held)
