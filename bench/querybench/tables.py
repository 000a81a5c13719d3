"""``python -m querybench.tables``: create the tables and fill them, as the request on the standard input says."""

from __future__ import annotations

import json
import sys
import time

from querybench.project import set_up


def main() -> None:
    request = json.load(sys.stdin)
    set_up(request["database"], [])
    from querybench.store.fill import create  # its models need the project

    start = time.perf_counter()
    create(sales=request["sales"])
    print(json.dumps({"seconds": time.perf_counter() - start}))


if __name__ == "__main__":
    main()
