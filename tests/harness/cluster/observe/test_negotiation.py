"""Requests use the newest version that both sides know."""

from collections.abc import AsyncIterator

import pytest

from broker_impl.wire.framing import decode_response, encode_response
from broker_impl.wire.messages import response_module
from broker_impl.wire.messages.metadata_request import MetadataRequest
from broker_impl.wire.messages.metadata_response import MetadataResponse
from harness.cluster.observe.negotiation import Negotiator, Supported
from tests.harness.cluster.observe.fake_broker import FakeBroker
from tests.harness.cluster.observe.recorded_frames import FRAMES, recorded

METADATA = 3


@pytest.fixture
async def broker() -> AsyncIterator[FakeBroker]:
    broker = FakeBroker({METADATA: range(1, 3)}, {METADATA: lambda *_: MetadataResponse()})
    await broker.start()
    yield broker
    broker.close()


@pytest.mark.parametrize(
    ("listed", "at_most", "newest"),
    [
        (range(3), None, 2),  # an old release decides
        (range(40), None, 12),  # these messages decide
        (range(4, 40), 7, 7),  # the caller decides
        (range(8, 40), 7, None),
        (range(20, 40), None, None),  # this release has removed all known versions
    ],
)
def test_newest_common_version(listed: range, at_most: int | None, newest: int | None) -> None:
    """The version is the newest that is in all ranges; none if there is no such version."""
    assert Supported({METADATA: listed}).newest(METADATA, at_most) == newest


def test_unknown_apis_have_no_version() -> None:
    """An API that the broker does not list, or that this project does not know, cannot be used."""
    assert Supported({68: range(2)}).newest(68) is None
    assert Supported({68: range(2)}).newest(METADATA) is None


async def test_request_is_made_for_the_negotiated_version(broker: FakeBroker) -> None:
    """ApiVersions is asked once, and the request is created for the version that is sent."""
    negotiator = Negotiator()
    made: list[int] = []

    def make(version: int) -> MetadataRequest:
        made.append(version)
        return MetadataRequest(topics=None)

    for _ in range(2):
        assert await negotiator.ask(broker.address, METADATA, make) is not None
    assert made == [2, 2]
    assert [version for version, _ in broker.asked_for(METADATA)] == [2, 2]
    assert [version for version, _ in broker.asked_for(18)] == [0]


async def test_features_are_asked_in_a_newer_version(broker: FakeBroker) -> None:
    """A broker with ApiVersions 3 or later is asked again, because only that reports features."""
    broker.versions[18] = range(4)
    broker.features = {"transaction.version": 2}
    supported = await Negotiator().supported(broker.address)
    assert supported is not None
    assert supported.features == {"transaction.version": 2}
    assert [version for version, _ in broker.asked_for(18)] == [0, 3]


async def test_failure_forgets_the_versions(broker: FakeBroker) -> None:
    """After a failed request, the broker may be another release: its versions are asked again."""
    negotiator = Negotiator()

    def fail(*_: object) -> None:
        raise OSError

    assert await negotiator.ask(broker.address, METADATA, lambda _: MetadataRequest(topics=None))
    broker.answers[METADATA] = fail
    assert await negotiator.ask(broker.address, METADATA, lambda _: MetadataRequest()) is None
    broker.answers[METADATA] = lambda *_: MetadataResponse()
    broker.versions[METADATA] = range(1, 10)
    assert await negotiator.ask(broker.address, METADATA, lambda _: MetadataRequest(topics=None))
    assert [version for version, _ in broker.asked_for(METADATA)] == [2, 2, 9]


async def test_absent_api_is_not_sent(broker: FakeBroker) -> None:
    """A request of an API that the broker does not list is not sent."""
    assert await Negotiator().ask(broker.address, 55, lambda _: None) is None
    assert broker.asked_for(55) == []


async def test_no_broker_supports_nothing(broker: FakeBroker) -> None:
    """Without an answer it is unknown what the broker supports."""
    broker.close()
    assert await Negotiator().supported(broker.address) is None


@pytest.mark.parametrize(
    ("release", "keys", "features"),
    [
        ("0.10.2.2", 21, {}),
        ("2.8.2", 56, {}),
        ("3.9.1", 62, {}),
        (
            "4.1.0",
            73,
            {
                "eligible.leader.replicas.version": 1,
                "group.version": 1,
                "metadata.version": 27,
                "transaction.version": 2,
            },
        ),
    ],
)
def test_real_answers(release: str, keys: int, features: dict[str, int]) -> None:
    """Each real release's list of APIs is decoded, including keys that are unknown here."""
    _, answer = recorded(release, 18)
    assert len(answer.api_keys) == keys
    found = {row.name: row.max_version_level for row in answer.finalized_features}
    assert found == features


@pytest.mark.parametrize(("release", "key", "version"), FRAMES)
def test_recorded_frames_are_encoded_alike(release: str, key: int, version: int) -> None:
    """What real releases answered is decoded completely: encoding it gives the same bytes."""
    frame = bytes.fromhex(FRAMES[release, key, version])
    correlation_id, body = decode_response(memoryview(frame), key, version)
    module = response_module(key)
    encoded = module.encode(module.decode(body, version), version)
    parts = encode_response(key, version, correlation_id, encoded)
    assert b"".join(bytes(part) for part in parts)[4:] == frame
