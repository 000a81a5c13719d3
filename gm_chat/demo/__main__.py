"""``python -m gm_chat.demo``."""

import sys

from gm_chat.demo.cli import main

if __name__ == "__main__":
    sys.exit(main(["demo", *sys.argv[1:]]))
