"""Requests of group members that name their instance or several members (KIP-345).

The requests of aiokafka do not.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import Array, Int16, Int32, Int64, Schema, String

from workloads.client.asking.requests import Place


class Membership(NamedTuple):
    """What a member names in its requests."""

    group: str
    generation: int
    member: str
    instance: str | None


_MEMBERSHIP = (
    ("group", String("utf-8")),
    ("generation_id", Int32),
    ("member_id", String("utf-8")),
    ("group_instance_id", String("utf-8")),
)


class _HeartbeatResponse(Response):  # type: ignore[misc]
    API_KEY = 12
    API_VERSION = 3
    SCHEMA = Schema(("throttle_time_ms", Int32), ("error_code", Int16))


class _Heartbeat(RequestStruct):  # type: ignore[misc]
    API_KEY = 12
    API_VERSION = 3
    RESPONSE_TYPE = _HeartbeatResponse
    SCHEMA = Schema(*_MEMBERSHIP)


class HeartbeatRequest(Request[_Heartbeat]):  # type: ignore[misc]
    """A heartbeat of a member, static or not."""

    API_KEY = 12

    def __init__(self, membership: Membership) -> None:
        self._membership = membership

    def build(self, request_struct_class: type[_Heartbeat]) -> _Heartbeat:
        return request_struct_class(*self._membership)


_LEAVING = (("member_id", String("utf-8")), ("group_instance_id", String("utf-8")))


class _LeaveResponse(Response):  # type: ignore[misc]
    API_KEY = 13
    API_VERSION = 3
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        ("error_code", Int16),
        ("members", Array(*_LEAVING, ("error_code", Int16))),
    )


class _Leave(RequestStruct):  # type: ignore[misc]
    API_KEY = 13
    API_VERSION = 3
    RESPONSE_TYPE = _LeaveResponse
    SCHEMA = Schema(("group", String("utf-8")), ("members", Array(*_LEAVING)))


class RemoveRequest(Request[_Leave]):  # type: ignore[misc]
    """Removes several members of a group at once, as tools do; each has an id, or is static."""

    API_KEY = 13

    def __init__(self, group: str, members: Iterable[tuple[str, str | None]]) -> None:
        """``members``: the member id and instance id of each."""
        self._group = group
        self._members = list(members)

    def build(self, request_struct_class: type[_Leave]) -> _Leave:
        return request_struct_class(self._group, self._members)


class _CommitResponse(Response):  # type: ignore[misc]
    API_KEY = 8
    API_VERSION = 7
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "topics",
            Array(
                ("topic", String("utf-8")),
                ("partitions", Array(("partition", Int32), ("error_code", Int16))),
            ),
        ),
    )


def epoch_of(offset: int) -> int:
    """Return the leader epoch to commit with an offset."""
    return offset % 7


class _Commit(RequestStruct):  # type: ignore[misc]
    API_KEY = 8
    API_VERSION = 7
    RESPONSE_TYPE = _CommitResponse
    SCHEMA = Schema(
        *_MEMBERSHIP,
        (
            "topics",
            Array(
                ("topic", String("utf-8")),
                (
                    "partitions",
                    Array(
                        ("partition", Int32),
                        ("offset", Int64),
                        ("leader_epoch", Int32),
                        ("metadata", String("utf-8")),
                    ),
                ),
            ),
        ),
    )


class CommitRequest(Request[_Commit]):  # type: ignore[misc]
    """A commit of one offset by a member, static or not."""

    API_KEY = 8

    def __init__(self, membership: Membership, place: Place, offset: int) -> None:
        self._membership = membership
        row = (place.partition, offset, epoch_of(offset), f"at {offset}")
        self._topics: list[Any] = [(place.topic, [row])]

    def build(self, request_struct_class: type[_Commit]) -> _Commit:
        return request_struct_class(*self._membership, self._topics)
