"""``python -m bench.historic``: runs historic bugs on real releases and on this project's broker.

Exit status 1: a release with a bug was not convicted, or one without it was not acquitted.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.historic import results as results_
from bench.historic import runner
from bench.historic.page import PAGE, page
from bench.historic.results import Results
from bench.historic.stories import PARTS, STORIES
from harness.app import files, private


def main(words: Sequence[str] | None = None, command: runner.Command = runner.faultline) -> int:
    """Do the missing runs, write the page, and report what did not end as it must."""
    parser = argparse.ArgumentParser(prog="python -m bench.historic", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(STORIES))
    parser.add_argument(
        "--parts", default=",".join(PARTS), help=f"systems to measure ({','.join(PARTS)})"
    )
    parser.add_argument("--runs", type=int, default=5, help="seeds per system (5)")
    parser.add_argument("--results", type=Path, default=runner.ROOT / "results" / "historic")
    parser.add_argument("--docs", type=Path, default=runner.ROOT / "docs")
    asked = parser.parse_args(words)
    if unknown := [name for name in asked.names if name not in STORIES]:
        parser.error(f"no story is called {unknown[0]}; there is {', '.join(STORIES)}")
    parts = asked.parts.split(",")
    if unknown := [part for part in parts if part not in PARTS]:
        parser.error(f"no part is called {unknown[0]}; there is {', '.join(PARTS)}")
    stories = [STORIES[name] for name in asked.names or STORIES]
    pairs = [(story, place) for story in stories for place in story.places if place.part in parts]
    data = asked.docs / results_.DATA
    digests = {name: runner.digest(story) for name, story in STORIES.items()}

    def stored(found: Results) -> None:
        with private.as_asked():  # it belongs to the repository
            text = page(list(STORIES.values()), found, digests)
            files.replace(asked.docs / PAGE, text.encode())

    found = runner.measure(
        pairs, data, asked.results, asked.runs, _say, command=command, stored=stored
    )
    stored(found)
    wrong = [
        (story, place, run)
        for story, place in pairs
        for run in found.of(story, place, digests[story.name]).values()
        if not run.is_as_expected(story, place)
    ]
    for story, place, run in wrong:
        _say(f"{story.name}: {place.system}, seed {run.seed}, did not end as it must")
    return 1 if wrong else 0


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
