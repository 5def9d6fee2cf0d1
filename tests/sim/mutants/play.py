"""``python play.py PLAN [MUTANT …]`` simulates and judges a plan twice: as it is, and with these
mutants planted as well. It prints the two verdicts, one line of JSON each."""

import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from harness.simulation import pins


def main(path: Path, planted: Sequence[str]) -> None:
    """Both runs, the one without them first."""
    import msgspec  # with all that binds a clock: after the pins

    from harness.app import request
    from harness.app.search import one

    asked = request.plan_of(request.from_toml(path))
    for mutants in (asked.mutants, (*asked.mutants, *planted)):
        began_s = time.process_time()
        plan = request.resolve(msgspec.structs.replace(asked, mutants=mutants))
        with tempfile.TemporaryDirectory() as results:
            folder = Path(results)
            ran = one.of_plan(plan, folder)
            assert ran.status != "failed", (folder / "crash.txt").read_text()
            verdict = json.loads((folder / "verdict.json").read_bytes())
        verdict["cpu_s"] = round(time.process_time() - began_s, 2)
        sys.stdout.write(json.dumps(verdict) + "\n")


if __name__ == "__main__":
    pins.exec_pinned()
    pins.install()
    main(Path(sys.argv[1]), sys.argv[2:])
