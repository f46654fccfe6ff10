"""``python -m draftproof``."""

import sys

from draftproof.cli import main

if __name__ == "__main__":
    sys.exit(main())
