"""Requests that aiokafka lacks, or sends with fewer fields, in the form in which it sends requests.

ListOffsets v7 finds the largest timestamp (KIP-734); it and OffsetForLeaderEpoch v3 name the leader
epoch that the client knows (KIP-320), and Fetch v11 names the client's rack (KIP-392).
"""

from typing import Any, NamedTuple

from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.fetch import FetchRequest_v11
from aiokafka.protocol.types import (
    Array,
    CompactArray,
    CompactString,
    Int8,
    Int16,
    Int32,
    Int64,
    Schema,
    String,
    TaggedFields,
)

CONSUMER = -1
"""The replica id of a client that is not a replica."""
UNKNOWN_EPOCH = -1
WAIT_MS = 50
"""How long a broker may wait for records before it answers a fetch."""


class Place(NamedTuple):
    """A partition as brokers know it."""

    topic: str
    partition: int


_LISTED = (
    ("partition", Int32),
    ("error_code", Int16),
    ("timestamp", Int64),
    ("offset", Int64),
    ("leader_epoch", Int32),
)
_ASKED = (("partition", Int32), ("current_leader_epoch", Int32), ("timestamp", Int64))
_TAGS = ("tags", TaggedFields)


class _ListOffsetsResponse5(Response):  # type: ignore[misc]
    API_KEY = 2
    API_VERSION = 5
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        ("topics", Array(("topic", String("utf-8")), ("partitions", Array(*_LISTED)))),
    )


class _ListOffsetsResponse7(Response):  # type: ignore[misc]
    API_KEY = 2
    API_VERSION = 7
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "topics",
            CompactArray(
                ("topic", CompactString("utf-8")),
                ("partitions", CompactArray(*_LISTED, _TAGS)),
                _TAGS,
            ),
        ),
        _TAGS,
    )


class _ListOffsets5(RequestStruct):  # type: ignore[misc]
    API_KEY = 2
    API_VERSION = 5
    RESPONSE_TYPE = _ListOffsetsResponse5
    SCHEMA = Schema(
        ("replica_id", Int32),
        ("isolation_level", Int8),
        ("topics", Array(("topic", String("utf-8")), ("partitions", Array(*_ASKED)))),
    )


class _ListOffsets7(RequestStruct):  # type: ignore[misc]
    FLEXIBLE_VERSION = True
    API_KEY = 2
    API_VERSION = 7
    RESPONSE_TYPE = _ListOffsetsResponse7
    SCHEMA = Schema(
        ("replica_id", Int32),
        ("isolation_level", Int8),
        (
            "topics",
            CompactArray(
                ("topic", CompactString("utf-8")),
                ("partitions", CompactArray(*_ASKED, _TAGS)),
                _TAGS,
            ),
        ),
        _TAGS,
    )


class ListOffsetsRequest(Request[_ListOffsets5 | _ListOffsets7]):  # type: ignore[misc]
    """Asks for one offset of a partition."""

    API_KEY = 2

    def __init__(self, place: Place, timestamp: int, isolation: int, epoch: int) -> None:
        self._place = place
        self._isolation = isolation
        self._asked = (place.partition, epoch, timestamp)

    def build(self, request_struct_class: type[Any]) -> Any:
        if request_struct_class is _ListOffsets5:
            topics: list[Any] = [(self._place.topic, [self._asked])]
            return request_struct_class(CONSUMER, self._isolation, topics)
        topics = [(self._place.topic, [(*self._asked, {})], {})]
        return request_struct_class(CONSUMER, self._isolation, topics, {})


class _EpochEndResponse(Response):  # type: ignore[misc]
    API_KEY = 23
    API_VERSION = 3
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "topics",
            Array(
                ("topic", String("utf-8")),
                (
                    "partitions",
                    Array(
                        ("error_code", Int16),
                        ("partition", Int32),
                        ("leader_epoch", Int32),
                        ("end_offset", Int64),
                    ),
                ),
            ),
        ),
    )


class _EpochEnd(RequestStruct):  # type: ignore[misc]
    API_KEY = 23
    API_VERSION = 3
    RESPONSE_TYPE = _EpochEndResponse
    SCHEMA = Schema(
        ("replica_id", Int32),
        (
            "topics",
            Array(
                ("topic", String("utf-8")),
                (
                    "partitions",
                    Array(
                        ("partition", Int32),
                        ("current_leader_epoch", Int32),
                        ("leader_epoch", Int32),
                    ),
                ),
            ),
        ),
    )


class EpochEndRequest(Request[_EpochEnd]):  # type: ignore[misc]
    """Asks where a leader epoch ends in the leader's log (OffsetForLeaderEpoch)."""

    API_KEY = 23

    def __init__(self, place: Place, asked_epoch: int, epoch: int) -> None:
        self._topics = [(place.topic, [(place.partition, epoch, asked_epoch)])]

    def build(self, request_struct_class: type[_EpochEnd]) -> _EpochEnd:
        return request_struct_class(CONSUMER, self._topics)


class FetchSession(NamedTuple):
    """The id of a fetch session, and the epoch of the next request in it (KIP-227)."""

    id: int
    epoch: int


NO_SESSION, NEW_SESSION = FetchSession(0, -1), FetchSession(0, 0)


class ReadRequest(Request[FetchRequest_v11]):  # type: ignore[misc]
    """Fetches one partition as a consumer in a rack, without a session if none is named."""

    API_KEY = 1

    def __init__(
        self,
        place: Place,
        offset: int,
        *,
        isolation: int,
        epoch: int,
        bytes_max: int,
        rack: str,
        session: FetchSession = NO_SESSION,
    ) -> None:
        self._topics = [(place.topic, [(place.partition, epoch, offset, -1, bytes_max)])]
        self._isolation = isolation
        self._rack = rack
        self._session = session

    def build(self, request_struct_class: type[FetchRequest_v11]) -> FetchRequest_v11:
        return request_struct_class(
            CONSUMER,
            WAIT_MS,
            1,
            1 << 20,
            self._isolation,
            *self._session,
            self._topics,
            [],
            self._rack,
        )
