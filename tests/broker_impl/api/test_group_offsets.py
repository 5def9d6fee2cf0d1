"""Offsets of groups: when those expire whose clients state a retention time of their own."""

import pytest

from broker_impl import config as configuration
from broker_impl.api.group_offsets import (
    expires_at_ms,
    is_too_long,
    is_withheld,
    known_error,
    verification_error,
)
from broker_impl.config.setting import INT64_MAX
from broker_impl.coordinator.records import Committed, decode_offset, encode_offset
from broker_impl.errors import ErrorCode

NOW_MS = 1_700_000_000_000


@pytest.mark.parametrize(
    ("retention_ms", "expires_ms"),
    [(0, NOW_MS), (1000, NOW_MS + 1000), (INT64_MAX - NOW_MS, INT64_MAX), (INT64_MAX, INT64_MAX)],
)
def test_an_expiry_time_is_one_that_a_record_can_hold(retention_ms: int, expires_ms: int) -> None:
    """OffsetCommit v2 to v4 state a time of up to 2**63 - 1 ms, which is added to the present."""
    assert expires_at_ms(NOW_MS, retention_ms) == expires_ms
    committed = Committed(7, -1, "", NOW_MS, expires_ms)
    assert decode_offset(encode_offset(committed)) == committed


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (ErrorCode.NONE, ErrorCode.NONE),
        (ErrorCode.INVALID_TXN_STATE, ErrorCode.INVALID_TXN_STATE),
        (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH),
    ],
)
def test_clients_know_the_error_of_a_transaction(answer: ErrorCode, error: ErrorCode) -> None:
    """Clients look for another group coordinator after NOT_COORDINATOR, which would be wrong here.

    Kafka 2.8.2 and 3.9.1 answer offsets of a replaced producer with INVALID_PRODUCER_EPOCH.
    """
    assert verification_error(answer) is error


def test_old_clients_do_not_get_the_error_that_ends_them() -> None:
    """Java's producers before 2.0 do not know COORDINATOR_LOAD_IN_PROGRESS here."""
    loading, other = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert [known_error(loading, version) for version in range(4)] == [other, other] + [loading] * 2
    assert known_error(ErrorCode.NONE, 0) is ErrorCode.NONE


def test_metadata_is_measured_as_by_java() -> None:
    """Each UTF-16 unit of the metadata counts, however many bytes it has."""
    given = {"zookeeper.connect": "z:1", "broker.id": "1", "offset.metadata.max.bytes": "4"}
    config = configuration.parse(given)
    assert not is_too_long("", config)
    assert not is_too_long("äöü€", config)
    assert not is_too_long("😀😀", config)
    assert is_too_long("12345", config)
    assert is_too_long("😀😀1", config)


def test_an_unstable_offset_is_withheld_on_request() -> None:
    """A client that does not ask for stable offsets gets the last one that was committed."""
    assert is_withheld(require_stable=True, is_unstable=True)
    assert not is_withheld(require_stable=False, is_unstable=True)
    assert not is_withheld(require_stable=True, is_unstable=False)
