"""The command line: verbs, options and exit statuses; the work itself is done by other modules."""

import sys

from harness.app import exits

if exits.is_program():
    exits.guard()  # before anything that can fail
try:
    from harness.app.cli.entry_point import main
    from harness.app.cli.verbs import faultline
except KeyboardInterrupt:  # the imports may take seconds on a busy machine
    print("faultline: interrupted", file=sys.stderr)
    sys.exit(exits.FAILED)

__all__ = ["faultline", "main"]
