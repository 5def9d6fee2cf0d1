"""The client without rights: what it reports, and that a planted bug makes it report something."""

import asyncio
import random
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from broker_impl.node.peers import PeerError
from broker_impl.wire.batch import Record, encode_batch
from broker_impl.wire.messages.describe_acls_request import DescribeAclsRequest
from broker_impl.wire.messages.describe_acls_response import (
    DescribeAclsResource,
    DescribeAclsResponse,
)
from broker_impl.wire.messages.fetch_request import FetchRequest
from broker_impl.wire.messages.fetch_response import (
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from broker_impl.wire.messages.metadata_request import MetadataRequest
from broker_impl.wire.messages.metadata_response import MetadataResponse
from harness.cluster.address import Address
from harness.cluster.simulated import outsider
from harness.cluster.simulated.outsider import Outsider
from harness.cluster.simulated.simulated_cluster import Simulated
from model import violation
from tests.harness.cluster.simulated.lab import Lab

RIGHT, NONE, SILENCE = True, False, None
BATCH, NOTHING = encode_batch([Record(value=b"v")], base_offset=5), b""


class Broker:
    """Answers about rights from a list, and every fetch with the same records."""

    def __init__(self, rights: list[bool | None], records: bytes) -> None:
        self.rights = rights
        self.records = records

    def update(self, brokers: Mapping[int, Address]) -> None:
        """Addresses do not matter."""

    async def request(
        self, broker: int, request: object, version: int, *, timeout_s: float
    ) -> object:
        match request:
            case MetadataRequest():
                return MetadataResponse()
            case DescribeAclsRequest():
                right = self.rights.pop(0)
                if right is SILENCE:
                    raise PeerError("no answer")
                return DescribeAclsResponse(resources=[DescribeAclsResource()] * right)
            case FetchRequest():
                rows = [PartitionData(partition_index=0, records=self.records)]
                return FetchResponse(responses=[FetchableTopicResponse("t", partitions=rows)])
            case _:
                raise PeerError("changes have no answer")


async def leaks(
    rights: list[bool | None],
    records: bytes,
    monkeypatch: pytest.MonkeyPatch,
    changes: int = 0,
    lives: Sequence[int] = (1, 1),
) -> list[tuple[int, str, int]]:
    """Return what the outsider reports about one fetch."""
    found: list[tuple[int, str, int]] = []
    broker = Broker(rights, records)
    monkeypatch.setattr(outsider, "Peers", lambda *_: broker)
    at = {1: Address("h", 1)}
    life_of = iter(lives)
    reader = Outsider(
        *(at, at, random.Random(1), 0.1),
        lambda *leak: found.append(leak[:3]),
        lambda _: next(life_of),
    )
    monkeypatch.setattr(outsider, "CHANGE_P", 1.1)
    for _ in range(changes):
        await reader._change()
    monkeypatch.setattr(outsider, "CHANGE_P", 0.0)
    await reader.visit(1)
    return found


@pytest.mark.parametrize(
    ("rights", "records", "changes", "is_leak"),
    [
        ([NONE, NONE], BATCH, 0, True),
        ([NONE, NONE], NOTHING, 0, False),
        ([RIGHT, NONE], BATCH, 0, False),  # the right was taken away while it fetched
        ([NONE, RIGHT], BATCH, 0, False),  # the broker read of the right while it fetched
        ([SILENCE, NONE], BATCH, 0, False),
        ([NONE, SILENCE], BATCH, 0, False),
        ([NONE, NONE], BATCH, 1, True),  # a right may still come, but not go again
        ([NONE, NONE], BATCH, 2, False),
    ],
)
async def test_only_what_is_certain_is_a_leak(
    rights: list[bool | None],
    records: bytes,
    changes: int,
    is_leak: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Records are a leak if the broker says before and after that the outsider has no right."""
    found = await leaks(rights, records, monkeypatch, changes)
    assert found == ([(1, "t-0", 5)] if is_leak else [])


async def test_a_broker_that_was_started_again_may_know_less(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A broker may read old rights at its start; what it said before does not count then."""
    assert await leaks([NONE, NONE], BATCH, monkeypatch, lives=(1, 2)) == []


@pytest.mark.slow
@pytest.mark.parametrize("mutants", [(), ("acl-checked-at-session-start",)])
def test_a_planted_bug_leaks(
    mutants: tuple[str, ...], lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Correct brokers answer the outsider and show it nothing; with the bug they show records."""
    made: list[Outsider] = []

    class Recorded(Outsider):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            made.append(self)

    monkeypatch.setattr(outsider, "Outsider", Recorded)

    async def work(cluster: Simulated) -> None:
        await asyncio.sleep(4.0)

    lab(work, options={"outsider_ms": 30}, mutants=mutants)
    assert made[0].answered > 40
    rows = violation.read(lab.folder / violation.FILE).violations
    assert {row.invariant for row in rows} == ({"leaked"} if mutants else set())
