"""``python3 -m setup [COMMAND …]``: set up what is missing, then run the command in it.

Apart from the rest, so that even a Python that is too old to read the rest can say so.
"""

import sys

if sys.version_info < (3, 11):  # noqa: UP036 - this is where an older one is told
    sys.exit(
        "Faultline needs Python 3.11 or later: install one and name it, make PYTHON=python3.12"
    )

from setup.main import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
