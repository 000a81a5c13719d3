"""Say what an environment of tox tests, and fail unless it is what its name says: ``python .ci/installed.py ENV_NAME``.

A provider's environment ``py311-dj52-openai-oldsdk`` must hold gm-chat and the plugin as installed wheels, and, with
the factor ``oldsdk``, the oldest SDK that the plugin's metadata allows, without it the newest that pip would choose.
"""

import importlib.metadata
import importlib.util
import sys
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

SDKS = {"openai": "openai", "anthropic": "anthropic", "google": "google-genai", "ollama": "ollama"}


def installed(package: str) -> str:
    """The folder of an installed package; exits if it is a checkout."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None or "site-packages" not in spec.origin:
        sys.exit(f"{package} is not the installed wheel: {spec and spec.origin}")
    return str(Path(spec.origin).parent)


def main(env_name: str) -> None:
    factors = env_name.split("-")
    (name,) = set(factors) & set(SDKS)
    places = [installed("gm_chat"), installed(f"gm_chat_provider_{name}")]
    sdk = SDKS[name]
    required = map(Requirement, importlib.metadata.requires(f"gm-chat-provider-{name}") or ())
    (specifier,) = (item.specifier for item in required if item.name == sdk)
    (floor,) = (Version(bound.version) for bound in specifier if bound.operator == ">=")
    version = Version(importlib.metadata.version(sdk))
    if "oldsdk" in factors and version.release[: len(floor.release)] != floor.release:
        sys.exit(f"{env_name} has {sdk} {version}: the oldest that the plugin allows is {floor}; mend tox.ini")
    print(f"{sdk} {version} ({specifier}); {', '.join(places)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
