"""``python -m querybench.page``: one contestant's page beside the same page by hand, in one process."""

from __future__ import annotations

import importlib
import json
import sys

from querybench.project import set_up


def main() -> None:
    request = json.load(sys.stdin)
    set_up(request["database"], request["apps"])
    raw = importlib.import_module("querybench.pages.raw")
    contestant = importlib.import_module(f"querybench.pages.{request['module']}")
    from querybench.timing import heard, in_turns

    contestant.page()  # what is set up at a first call is not heard
    answer, statements = heard(contestant.page)
    expected, got = raw.plain(raw.page()), contestant.plain(answer)
    if got != expected:
        wrong = next((pair for pair in zip(expected, got, strict=False) if pair[0] != pair[1]), "their number")
        raise SystemExit(f"{request['module']} gives other rows: {wrong}")
    print(json.dumps({**in_turns(raw.page, contestant.page, request["rounds"]), "statements": statements}))


if __name__ == "__main__":
    main()
