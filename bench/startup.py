"""What gm_chat adds to ``django.setup()``: a fresh interpreter with and without it, in turn.

Run: ``python bench/startup.py [--runs 7]``. The aim is at most 0.35 s more, with every plugin installed. Prints the
medians, the difference, and the heavy packages that got imported (there should be none).
"""

import argparse
import json
import statistics
import subprocess
import sys

PROGRAM = """
import json, sys, time
import django
from django.conf import settings
apps = ["django.contrib.auth", "django.contrib.contenttypes", "django.contrib.sessions"] + {extra!r}
settings.configure(INSTALLED_APPS=apps, SECRET_KEY="bench", ROOT_URLCONF="bench_urls", USE_TZ=True,
    DATABASES={{"default": {{"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}}},
    GM_CHAT={{"enabled": True, "provider": "ollama"}})
start = time.perf_counter()
django.setup()
seconds = time.perf_counter() - start
loaded = {{name.partition(".")[0] for name in sys.modules}}
heavy = sorted(loaded & {{"graphql", "openai", "ollama", "anthropic", "google", "httpx", "httpx2"}})
print(json.dumps({{"seconds": seconds, "heavy": heavy}}))
"""


def once(extra: list[str]) -> dict[str, object]:
    program = PROGRAM.format(extra=extra)
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)  # type: ignore[no-any-return]  # the program above prints one object


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=7)
    runs = parser.parse_args().runs
    plain: list[float] = []
    chat: list[float] = []
    heavy: object = []
    once([]), once(["gm_chat"])  # fill the byte-code caches
    for _ in range(runs):
        plain.append(float(str(once([])["seconds"])))
        with_chat = once(["gm_chat"])
        chat.append(float(str(with_chat["seconds"])))
        heavy = with_chat["heavy"]
    print(f"django.setup() alone   {statistics.median(plain):.3f} s")
    print(f"with gm_chat           {statistics.median(chat):.3f} s")
    print(f"difference             {statistics.median(chat) - statistics.median(plain):+.3f} s (aim: at most +0.350)")
    print(f"SDKs or graphql-core imported: {heavy or 'none'}")


if __name__ == "__main__":
    main()
