"""Mutated frames do no harm to the broker, and each kind of harm that is planted is noticed."""

import hmac
import struct
from collections.abc import Callable
from typing import Any

import pytest

from bench.frames import campaign, cases
from bench.frames.cases import AFTER, BEFORE, OPEN, Case
from broker_impl.api import access, fetch
from broker_impl.api.registry import APIS, Api
from broker_impl.security import sessions
from broker_impl.security.sessions import Event, SaslSession, State
from broker_impl.server.connection import Connection
from broker_impl.server.memory_limits import Bounds
from broker_impl.wire.framing import RequestHeader, encode_request
from broker_impl.wire.messages import request_module, response_module
from broker_impl.wire.messages.create_partitions_request import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from broker_impl.wire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from broker_impl.wire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from broker_impl.wire.messages.find_coordinator_request import FindCoordinatorRequest
from broker_impl.wire.messages.incremental_alter_configs_request import (
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from broker_impl.wire.messages.list_groups_request import ListGroupsRequest
from broker_impl.wire.messages.sasl_authenticate_request import SaslAuthenticateRequest
from broker_impl.wire.messages.sasl_handshake_request import SaslHandshakeRequest

FIND_COORDINATOR, LIST_GROUPS, FETCH, HANDSHAKE = 10, 16, 1, 17
VERSIONS, AUTHENTICATE = 18, 36


def sent(*requests: tuple[int, int, Any]) -> bytes:
    """Frames of these requests: API key, version, message."""
    frames = b""
    for number, (key, version, message) in enumerate(requests, 1):
        body = request_module(key).encode(message, version)
        frames += b"".join(encode_request(RequestHeader(key, version, number, None), body))
    return frames


def reading(topic: str) -> tuple[int, int, Any]:
    """A Fetch of all records of a topic's first partition."""
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1_000_000)
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        session_epoch=-1,
        topics=[FetchTopic(topic=topic, partitions=[partition])],
    )
    return FETCH, 11, request


MANY, NAME = 30_000, "a-topic-whose-name-is-not-short"
LISTING = (LIST_GROUPS, 2, ListGroupsRequest())


def problems(mode: str, data: bytes, plant: Callable[[], object] = lambda: None) -> list[str]:
    """The problems of one connection; ``plant`` is called once the broker is ready."""
    return campaign.replay(Case(mode, data, 1 << 20), plant).problems


def test_a_thousand_frames_do_no_harm() -> None:
    """No exception escapes, memory stays bounded, and responses are readable and permitted."""
    summary = campaign.run(20, 1000, guided=False)
    assert [finding.problem for finding in summary.findings.values()] == []
    assert set(summary.cases) == set(cases.MODES)
    assert summary.frames >= 1000
    assert summary.answers > 200
    assert 100 < summary.closed < summary.cases.total()


def test_a_seed_sends_the_same_frames_again() -> None:
    """A seed has the same frames and responses each time, and another seed has others."""
    first, again, other = (
        campaign.run(seed, 60, guided=False).digest.hexdigest() for seed in (1, 1, 2)
    )
    assert first == again != other


def test_frames_that_reach_new_lines_are_kept() -> None:
    """A guided run counts lines of the broker, and keeps frames for further mutations."""
    summary = campaign.run(3, 60)
    assert summary.lines > 1000
    assert 0 < len(summary.kept) <= summary.frames
    assert summary.findings == {}


def test_later_frames_are_kept_from_one_of_some_cases_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign, "TRACED_ALL", 4)
    monkeypatch.setattr(campaign, "TRACED_EVERY", 1000)
    traced = campaign.run(3, 60)
    monkeypatch.setattr(campaign, "TRACED_ALL", 1000)
    all_traced = campaign.run(3, 60)
    assert 0 < traced.lines < all_traced.lines
    assert 0 < len(traced.kept) < len(all_traced.kept)


def test_a_campaign_reports_after_each_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign, "CASES_PER_BROKER", 5)
    seen: list[tuple[int, int]] = []
    summary = campaign.run(
        3,
        60,
        guided=False,
        on_broker=lambda each: seen.append((each.brokers, each.cases.total())),
    )
    assert seen[:-1] == [(number, 5 * number) for number in range(1, summary.brokers)]
    assert seen[-1] == (summary.brokers, summary.cases.total())


def test_an_unexpected_error_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A handler that raises is a problem with the place where it was raised."""
    assert problems(OPEN, sent(LISTING)) == []

    def handle(context: Any, request: Any) -> Any:
        raise KeyError("planted")

    row = APIS[LIST_GROUPS]
    fields = {name: getattr(row, name) for name in row.__slots__} | {"handle": handle}
    (problem,) = problems(
        OPEN, sent(LISTING), lambda: monkeypatch.setitem(APIS, LIST_GROUPS, Api(**fields))
    )
    assert problem.startswith("KeyError: 'planted'")


def test_a_broken_invariant_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error that ends the broker is a problem."""

    def isolation_of(asked: int, again: bool) -> int:
        raise AssertionError("planted")

    found = problems(
        OPEN, sent(reading("t")), lambda: monkeypatch.setattr(fetch, "isolation_of", isolation_of)
    )
    assert any(each.startswith("the broker ended: AssertionError: planted") for each in found)


def test_an_error_that_escapes_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception that leaves the connection is a problem."""

    def handle(self: Connection, frame: memoryview) -> None:
        raise IndexError("planted")

    found = problems(
        OPEN, sent(LISTING), lambda: monkeypatch.setattr(Connection, "_handle", handle)
    )
    assert found[0].startswith("escaped: IndexError: planted")


def test_an_answer_before_the_authentication_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request that is answered too early is a problem, and ApiVersions is none."""
    versions = struct.pack(">ihhih", 10, VERSIONS, 0, 1, -1)
    early = sent((FIND_COORDINATOR, 1, FindCoordinatorRequest(key="t")))
    assert problems(BEFORE, versions + early) == []
    planted = {**sessions.TRANSITIONS, (State.NEW, Event.OTHER): State.NEW}
    found = problems(BEFORE, early, lambda: monkeypatch.setattr(sessions, "TRANSITIONS", planted))
    assert found == [f"API {FIND_COORDINATOR} was answered before the authentication"]


def test_a_user_without_a_password_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that becomes a user by an exchange that it should not pass is a problem."""
    chosen = (HANDSHAKE, 1, SaslHandshakeRequest("PLAIN"))
    wrong = (AUTHENTICATE, 2, SaslAuthenticateRequest(b"\0alice\0guessed"))
    assert problems(BEFORE, sent(chosen, wrong)) == []
    found = problems(
        BEFORE,
        sent(chosen, wrong),
        lambda: monkeypatch.setattr(hmac, "compare_digest", lambda one, other: True),
    )
    assert found == ["mode before: the client became User:alice"]


def test_a_record_for_the_wrong_reader_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A record in the response to a client without the right to read it is a problem."""
    assert problems(AFTER, sent(reading("t"), reading("hidden"))) == []

    def guard(check: Any, request: Any, call: Any) -> Any:
        return call(request)

    def plant() -> None:
        monkeypatch.setattr(access, "GUARDS", {**access.GUARDS, FETCH: guard})

    own = campaign.replay(Case(AFTER, sent(reading("t")), 1 << 20), plant)
    assert (own.problems, b"a record" in own.written) == ([], True)
    (problem,) = problems(AFTER, sent(reading("hidden")), plant)
    assert "a record was returned to a client without the right to read it" in problem


def test_too_much_memory_before_the_authentication_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A large request of a client that is not authenticated is refused before it is held."""
    large = struct.pack(">ihhih", 500_000, VERSIONS, 3, 1, -1) + bytes(400_000)
    assert problems(BEFORE, large) == []
    found = problems(
        BEFORE,
        large,
        lambda: monkeypatch.setattr(SaslSession, "bytes_max", property(lambda _: None)),
    )
    assert any("are held for a client without authentication" in each for each in found)


def test_memory_that_is_not_given_back_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes that stay accounted for after the end of the connection are a problem."""
    original = Bounds.hold

    def hold(self: Bounds, count: int) -> None:
        original(self, max(count, 0))

    case = Case(OPEN, sent(LISTING), 7)
    assert campaign.replay(case).problems == []
    found = campaign.replay(case, lambda: monkeypatch.setattr(Bounds, "hold", hold)).problems
    assert any("are still held" in each for each in found)


def test_an_unreadable_response_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A response that cannot be decoded in its version is a problem."""
    module = response_module(LIST_GROUPS)
    found = problems(
        OPEN,
        sent(LISTING),
        lambda: monkeypatch.setattr(module, "encode", lambda message, version: [b"\0\0\0\0"]),
    )
    assert any("cannot be read" in each for each in found)


@pytest.mark.parametrize(
    ("key", "version", "message"),
    [
        (19, 5, CreateTopicsRequest(topics=[CreatableTopic(name=NAME)] * MANY)),
        (37, 3, CreatePartitionsRequest(topics=[CreatePartitionsTopic(name=NAME)] * MANY)),
        (44, 1, IncrementalAlterConfigsRequest(resources=[AlterConfigsResource(2, NAME)] * MANY)),
        (44, 1, IncrementalAlterConfigsRequest(resources=[AlterConfigsResource(4, "1")] * MANY)),
    ],
)
def test_a_request_with_many_parts_is_not_slow(key: int, version: int, message: Any) -> None:
    """The time of a request does not grow with the square of its parts, which may be repeated."""
    assert problems(OPEN, sent((key, version, message))) == []


def test_frames_are_split_at_their_lengths() -> None:
    """Only complete frames count, up to a length that is not valid."""
    one, two = struct.pack(">i", 2) + b"ab", struct.pack(">i", 0)
    assert list(cases.split(one + two + one[:5])) == [b"ab", b""]
    assert list(cases.split(struct.pack(">i", -1) + one)) == []
