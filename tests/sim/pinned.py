"""``python pinned.py PLAN.json RESULTS``: a resolved plan in a pinned process, so that a test sees
the same course every time. Tells the run's folder; all else is in there."""

import io
import sys
from pathlib import Path

from harness.simulation import pins


def main(path: Path, results: Path) -> None:
    """Carry it out, judge it in this process."""
    import msgspec  # with all that binds a clock: after the pins

    from harness.app.run import run
    from harness.app.screen import Screen
    from model.plan import Plan

    plan = msgspec.json.decode(path.read_bytes(), type=Plan)
    done = run(plan, results, inline=True, screen=Screen(io.StringIO()))
    sys.stdout.write(f"{done.folder}\n")


if __name__ == "__main__":
    pins.exec_pinned()
    pins.install()
    main(Path(sys.argv[1]), Path(sys.argv[2]))
