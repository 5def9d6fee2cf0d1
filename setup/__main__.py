"""``python3 -m setup [COMMAND …]``: install what is missing, then run the command.

This file is separate from the rest so that even a Python version that is too old for the rest can
print the error.
"""

import sys

if sys.version_info < (3, 11):  # noqa: UP036 - an older version is refused here
    sys.exit(
        "Faultline needs Python 3.11 or later: install it, and run make with its name, for example"
        " make PYTHON=python3.12"
    )

from setup.main import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
