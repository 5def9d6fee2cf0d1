"""``python -m bench.zookeeper_bugs``: bugs of releases of Apache ZooKeeper, on real servers.

Exit status 1: a release with a bug did not show it, or one without it did.
"""

import argparse
import asyncio
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench.zookeeper_bugs.stories import STORIES, Story
from harness.app import catalogue, plan_resolution
from harness.systems.catalogue import system as system_of
from model.plan import Plan


async def shown(story: Story, system: str) -> str | None:
    """Return what shows the bug on a system; None if nothing does."""
    plan = plan_resolution.standalone(Plan(system=system, options=dict(story.options)))
    await system_of(system).prepare(plan, _say)
    with tempfile.TemporaryDirectory(prefix="zookeeper-bug-") as folder:
        cluster: Any = catalogue.maker_of(plan)(plan, Path(folder), random.Random(1))
        cluster.peer_port = lambda node: cluster._ports[node]["ELECTION"]
        cluster.pid_of = lambda node: cluster._nodes[node].pid
        await cluster.start()
        try:
            return await story.is_shown(cluster)
        finally:
            await cluster.stop()


def main() -> int:
    """Run the stories, print a table, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m bench.zookeeper_bugs", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="JIRA", help="the stories; all by default")
    asked = parser.parse_args()
    wrong = 0
    for story in STORIES:
        if asked.names and story.jira not in asked.names:
            continue
        print(f"{story.jira}: {story.title}", flush=True)
        for system in (story.has_it, *story.has_not):
            found = asyncio.run(shown(story, system))
            is_right = (found is not None) == (system == story.has_it)
            wrong += not is_right
            print(f"  {system}: {found or 'not shown'}{'' if is_right else '   WRONG'}", flush=True)
    return 1 if wrong else 0


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
