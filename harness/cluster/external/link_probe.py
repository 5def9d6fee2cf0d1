"""A probe in a node's network namespace measures whether a peer sends a TCP packet back."""

import json
from collections.abc import Sequence
from typing import NamedTuple

from harness.cluster.external import link_rules

TIMEOUT_S = 1.5
CLOSED_PORT = 9
"""The port that is probed if a container exposes none; a closed port answers, too."""
_SCRIPT = """
import asyncio, json, subprocess, sys

async def knock(host, port):
    try:
        _, writer = await asyncio.wait_for(asyncio.open_connection(host, port), {timeout_s})
    except ConnectionRefusedError:
        return True
    except (OSError, asyncio.TimeoutError):
        return False
    writer.close()
    return True

async def main():
    return await asyncio.gather(*(knock(host, int(sys.argv[1])) for host in sys.argv[2:]))

print(json.dumps(asyncio.run(main())))
if {lists_rules}:
    subprocess.run(["nft", "--json", "list", "ruleset"], check=True)
"""


class Reached(NamedTuple):
    """The outcome of a probe."""

    answers: bool
    """Has any address accepted or refused a connection?"""
    dropped: dict[str, int]
    """The packets that each table of rules has dropped in the namespace of the probe."""


def command(addresses: Sequence[str], port: int, *, lists_rules: bool) -> list[str]:
    """Return the command of a probe; only with the right NET_ADMIN it can list rules."""
    script = _SCRIPT.format(timeout_s=TIMEOUT_S, lists_rules=lists_rules)
    return ["python3", "-c", script, str(port), *addresses]


def outcome(printed: str) -> Reached:
    """Return what the command has printed as a value."""
    answers, _, listing = printed.partition("\n")
    return Reached(any(json.loads(answers)), link_rules.dropped(listing) if listing else {})
