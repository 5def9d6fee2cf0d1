"""A probe of a link distinguishes a peer that answers, with any packet, from a silent one."""

import asyncio
import socket
import subprocess
import sys

import pytest

from harness.cluster.external import link_probe
from harness.cluster.external.link_probe import Reached
from harness.cluster.ports import HOST


def run(port: int, *addresses: str) -> Reached:
    command = link_probe.command(addresses, port, lists_rules=False)
    ended = subprocess.run(
        [sys.executable, *command[1:]], capture_output=True, text=True, check=True, timeout=30
    )
    return link_probe.outcome(ended.stdout.strip())


@pytest.mark.slow
async def test_open_and_closed_ports_answer() -> None:
    """A closed port refuses with a packet, which has crossed the link in both directions."""
    with socket.create_server((HOST, 0)) as server:
        port = server.getsockname()[1]
        assert (await asyncio.to_thread(run, port, HOST)).answers
    assert (await asyncio.to_thread(run, port, HOST)).answers


@pytest.mark.slow
async def test_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    """A peer that answers no packet is not reached, nor is one without addresses.

    A listener whose queue is full drops connection requests.
    """
    monkeypatch.setattr(link_probe, "TIMEOUT_S", 0.3)
    with socket.socket() as server, socket.socket() as one, socket.socket() as two:
        server.bind((HOST, 0))
        server.listen(0)
        for client in (one, two):
            client.setblocking(False)
            client.connect_ex(server.getsockname())
        assert not (await asyncio.to_thread(run, server.getsockname()[1], HOST)).answers
    assert not (await asyncio.to_thread(run, 9)).answers


def test_rules_are_listed_with_rights_only() -> None:
    assert "if True:" in link_probe.command([HOST], 9, lists_rules=True)[2]
    assert "if False:" in link_probe.command([HOST], 9, lists_rules=False)[2]


def test_outcome() -> None:
    counter = {"counter": {"packets": 3, "bytes": 0}}
    rule = f'{{"rule": {{"table": "faultline_x", "expr": [{counter}]}}}}'.replace("'", '"')
    assert link_probe.outcome(f'[false, true]\n{{"nftables": [{rule}]}}') == Reached(
        True, {"faultline_x": 3}
    )
    assert link_probe.outcome("[false]") == Reached(False, {})
