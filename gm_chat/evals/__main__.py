"""``python -m gm_chat.evals``: see :mod:`gm_chat.evals.command`."""

import sys

from gm_chat.evals.command import main

if __name__ == "__main__":
    sys.exit(main())
