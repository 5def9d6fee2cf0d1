"""Hashes of simulated histories and of their findings, which prove that behaviour stays the same.

    python tests/sim/same.py            # compare with same.json; status 1 where a case differs
    python tests/sim/same.py --every 20 # compare only each twentieth case
    python tests/sim/same.py --renew    # write same.json

A case is a seed of a workload, with the faults that the seed draws, or a planted bug with the
schedule of its plan. A change that must not alter behaviour leaves every hash as it is.
"""

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from harness.simulation import determinism

HERE = Path(__file__).resolve().parent
HASHES = HERE / "same.json"
PLANS = HERE.parents[1] / "examples" / "mutants"
SEEDS = 10
TIME_LIMIT_S = 15.0
PLANTED = 20

Case = tuple[str, Callable[[], Any]]
"""A name, and a function that makes the plan."""


def cases() -> Iterator[Case]:
    """Ten seeds of every workload, and twenty mutants, always the same."""
    from harness.app import catalogue

    for workload in sorted(catalogue.WORKLOADS):
        for seed in range(1, SEEDS + 1):
            yield f"{workload} {seed}", partial(_of_seed, workload, seed)
    plans = sorted(path for path in PLANS.glob("*.toml") if not path.stem.startswith("zk-"))
    for path in sorted(random.Random(1).sample(plans, PLANTED)):
        yield path.stem, partial(_of_bug, path)


def _of_seed(workload: str, seed: int) -> Any:
    from harness.app import plan_resolution

    fields = {"target": "simulated", "workload": workload, "seed": seed}
    return plan_resolution.resolve(plan_resolution.plan_of(fields | {"time_limit_s": TIME_LIMIT_S}))


def _of_bug(path: Path) -> Any:
    import msgspec

    from harness.app import plan_resolution

    asked = plan_resolution.plan_of(plan_resolution.from_toml(path))
    return plan_resolution.resolve(
        msgspec.structs.replace(asked, mutants=(*asked.mutants, path.stem))
    )


def hashes(plan: Any, folder: Path) -> dict[str, Any]:
    """Hash what a plan's simulation records, and what is found in it."""
    import pyarrow.parquet as pq

    from harness.app.search import single_run

    folder.mkdir()
    ran = single_run.of_plan(plan, folder)
    assert ran.status != "failed", (folder / "crash.txt").read_text()
    findings = json.dumps(pq.read_table(folder / "findings.parquet").to_pylist(), sort_keys=True)
    return {
        "status": ran.status,
        "history": sha256((folder / "history.jsonl").read_bytes()).hexdigest(),
        "findings": sha256(findings.encode()).hexdigest(),
    }


def all_hashes(scratch: Path, jobs: int, every: int = 1) -> dict[str, Any]:
    """Hash every case, each simulated by a process of its own."""
    import pandas as _pandas  # noqa: F401 - pyarrow imports it: here, once for all processes

    from harness.app.search import single_run as _one  # noqa: F401 - the same
    from harness.app.search.jobs import SAID, Jobs, how_ended

    left = list(cases())[::every]
    folders = {name: scratch / str(number) for number, (name, _) in enumerate(left)}
    found: dict[str, Any] = {}
    with Jobs[str]() as running:
        while left or len(running):
            while left and len(running) < jobs:
                name, plan_of = left.pop(0)
                folders[name].mkdir()
                work = partial(_answer, plan_of, folders[name] / "run")
                running.start(name, work, folders[name] / SAID)
            for ended in running.ended(1.0):
                said = folders[ended.key] / SAID
                if ended.status:
                    sys.exit(f"{ended.key}: {how_ended(ended.status, said)}\n{said.read_text()}")
                found[ended.key] = json.loads(ended.answer)
                shutil.rmtree(folders[ended.key])
    return dict(sorted(found.items()))


def _answer(plan_of: Callable[[], Any], folder: Path) -> bytes:
    return json.dumps(hashes(plan_of(), folder)).encode()


def say(line: str) -> None:
    """Print a line."""
    sys.stdout.write(line + "\n")


def main() -> int:
    """Compare the hashes with those in the file, or write them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--renew", action="store_true", help="write the hashes")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--every", type=int, default=1, help="take each of so many cases (1)")
    asked = parser.parse_args()
    if asked.renew and asked.every != 1:
        sys.exit("--renew writes all cases: leave out --every")
    if not asked.renew and not HASHES.exists():
        sys.exit(f"{HASHES} is missing: write it with --renew, before the first change")
    began_s = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="faultline-same-") as scratch:
        found = all_hashes(Path(scratch), asked.jobs, asked.every)
    say(f"{len(found)} cases in {time.monotonic() - began_s:.0f} s")
    if asked.renew:
        HASHES.write_text(json.dumps(found, indent=1) + "\n")
        return 0
    expected = json.loads(HASHES.read_text())
    if asked.every != 1:
        expected = {name: expected.get(name) for name in found}
    other = [name for name in expected | found if expected.get(name) != found.get(name)]
    for name in other:
        say(f"{name}: {expected.get(name)} before, {found.get(name)} now")
    say(f"{len(other)} of {len(expected | found)} differ")
    return int(bool(other))


if __name__ == "__main__":
    determinism.exec_pinned()
    determinism.install()
    sys.exit(main())
