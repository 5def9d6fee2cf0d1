"""Simulates ZooKeeper ensembles under drawn faults, and checks them from inside and outside.

    python -m bench.ensembles --count 1000                      # three voters
    python -m bench.ensembles --count 1000 --voters 5 --observers 2
    python -m bench.ensembles --seed 7 --count 1                # one run, with its faults
    python -m bench.ensembles --mutant NAME                     # with a planted bug

The exit status is 1 if a run has shown a violation.
"""

from harness.simulation import determinism

if __name__ == "__main__":
    determinism.exec_pinned()
determinism.install()

import argparse  # noqa: E402
import logging  # noqa: E402
import sys  # noqa: E402

from bench.ensembles import campaign  # noqa: E402
from broker_impl.errors import ConfigError  # noqa: E402


def main() -> int:
    """Simulate the runs, and print the violations and a summary."""
    options = _parser().parse_args()
    logging.disable(logging.CRITICAL)
    summary = campaign.Summary()
    seeds = range(options.seed, options.seed + options.count)
    try:
        for outcome in campaign.outcomes(
            seeds,
            voters=options.voters,
            observers=options.observers,
            planted=options.mutant,
            workers=min(options.workers, options.count),
        ):
            summary.add(outcome)
            for violation in outcome.violations:
                print(f"seed {outcome.seed}: {violation}", flush=True)
            if options.count == 1:
                print("\n".join([*outcome.applied, *outcome.exits]))
    except ConfigError as error:
        print(f"ensembles: {error}", file=sys.stderr)
        return 64
    print("\n".join(summary.lines()))
    return int(bool(summary.bad_seeds))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.ensembles",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument("--count", type=int, default=100, help="number of runs")
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    parser.add_argument("--voters", type=int, default=3)
    parser.add_argument("--observers", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1, help="number of processes")
    parser.add_argument(
        "--mutant", action="append", default=[], metavar="NAME", help="plant this bug"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
