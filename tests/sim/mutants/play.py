"""``python play.py PLAN [MUTANT …]``: a plan in this process, once as it is and once with these
mutants too, each told in a line of JSON. It replaces itself by a process that simulates."""

import io
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

    from harness.app import request, run
    from harness.app.screen import Screen

    asked = request.plan_of(request.from_toml(path))
    for mutants in (asked.mutants, (*asked.mutants, *planted)):
        began_s = time.process_time()
        plan = request.resolve(msgspec.structs.replace(asked, mutants=mutants))
        with tempfile.TemporaryDirectory() as results:
            done = run.run(plan, Path(results), inline=True, screen=Screen(io.StringIO()))
        verdict = json.loads(done.judged.verdict.to_json())
        verdict["cpu_s"] = round(time.process_time() - began_s, 2)
        sys.stdout.write(json.dumps(verdict) + "\n")


if __name__ == "__main__":
    pins.exec_pinned()
    pins.install()
    main(Path(sys.argv[1]), sys.argv[2:])
