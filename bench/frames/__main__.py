"""Sends mutated frames to a simulated broker, before and after the authentication.

    python -m bench.frames --frames 100000             # prints its seed, which comes from the clock
    python -m bench.frames --frames 100000 --seed 7    # the same frames again, in the same order
    python -m bench.frames --replay before:00000009…   # one connection, as a finding prints it

No exception may escape or end the broker, every response must be readable, memory must stay
bounded, and a client that is not authenticated gets responses to ApiVersions, SaslHandshake and
SaslAuthenticate only.
The exit status is 1 if something of this did not hold.
"""

from harness.simulation import determinism

if __name__ == "__main__":
    determinism.exec_pinned()
determinism.install()

import argparse  # noqa: E402
import resource  # noqa: E402
import sys  # noqa: E402
import time  # noqa: E402

from bench.frames import campaign  # noqa: E402
from bench.frames.cases import MODES, Case  # noqa: E402

BROKERS_PER_LINE = 100
"""The brokers after which a line says how far the campaign is."""
HEX_MAX = 8000
"""The most digits of a case that are printed."""


def main() -> int:
    """Send the frames, and print the findings and a summary."""
    options = _parser().parse_args()
    if options.replay:
        mode, _, data = options.replay.partition(":")
        problems = campaign.replay(Case(mode, bytes.fromhex(data), 1 << 20)).problems
        print("\n".join(problems) or "nothing is wrong")
        return int(bool(problems))
    print(f"seed {options.seed}", flush=True)
    began = time.monotonic()
    summary = campaign.run(
        options.seed, options.frames, guided=not options.blind, on_broker=_progress
    )
    seconds = time.monotonic() - began
    for finding in summary.findings.values():
        print(f"{finding.count} times: {finding.problem}")
        print(_replay(finding))
    counts = ", ".join(f"{count:,} {mode}" for mode, count in sorted(summary.cases.items()))
    memory_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(
        f"{summary.frames:,} frames on {summary.cases.total():,} connections ({counts}), seed "
        f"{summary.seed}: {len(summary.findings)} findings\n"
        f"{summary.answers:,} responses; the broker closed {summary.closed:,} connections\n"
        f"{summary.lines:,} lines reached, {len(summary.kept):,} frames kept, "
        f"{summary.brokers} brokers, {memory_mb} MB\n"
        f"{seconds:.0f} s, {summary.frames / seconds:,.0f} frames/s, "
        f"digest {summary.digest.hexdigest()[:16]}"
    )
    return int(bool(summary.findings))


def _replay(finding: campaign.Finding) -> str:
    return f"    --replay {finding.case.mode}:{finding.case.data.hex()[:HEX_MAX]}"


def _progress(summary: campaign.Summary) -> None:
    """Say on standard error how far the campaign is, after so many brokers, and what it found."""
    for finding in summary.findings.values():
        if not finding.is_reported:
            finding.is_reported = True
            print(f"found: {finding.problem}\n{_replay(finding)}", file=sys.stderr, flush=True)
    if summary.brokers % BROKERS_PER_LINE == 0:
        print(
            f"{summary.frames:,} frames, {summary.brokers:,} brokers, {summary.lines:,} lines,"
            f" {len(summary.findings)} findings",
            file=sys.stderr,
            flush=True,
        )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.frames",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument("--frames", type=int, default=100_000, help="number of frames")
    parser.add_argument("--seed", type=int, default=time.time_ns() // 1_000_000)
    parser.add_argument(
        "--blind", action="store_true", help="do not keep frames that reach new lines"
    )
    parser.add_argument(
        "--replay", metavar="MODE:HEX", help=f"one connection; modes: {', '.join(set(MODES))}"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
