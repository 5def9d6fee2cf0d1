"""Records that identify themselves."""

from hypothesis import given
from hypothesis import strategies as st

from model import record_keys
from workloads.client import payload

KEYS = st.from_regex(r"[a-z]{1,8}-[0-9]{1,3}", fullmatch=True)
VALUES = st.integers(min_value=0, max_value=2**63 - 1)


@given(KEYS, VALUES)
def test_round_trip(key: str, value: int) -> None:
    """A number that was written to a partition is read as the same number there."""
    assert payload.decode(key, *payload.encode(key, value)) == value


@given(KEYS, KEYS, VALUES)
def test_another_partitions_record_is_nobodys(key: str, other: str, value: int) -> None:
    """A record in another partition is read as a negative number, which no client writes."""
    read = payload.decode(other, *payload.encode(key, value))
    assert (read == value) is (key == other)
    assert read < 0 or key == other


@given(KEYS, st.none() | st.binary(max_size=16), st.none() | st.binary(max_size=16))
def test_foreign_bytes_are_nobodys(
    key: str, record_key: bytes | None, record_value: bytes | None
) -> None:
    """Any bytes are decoded without an error, to a number of at most 64 bits."""
    read = payload.decode(key, record_key, record_value)
    assert -(2**63) <= read < 2**63
    if record_key != key.encode() or record_value is None or len(record_value) != 8:
        assert read < 0


NUMBERS = st.integers(min_value=0, max_value=2**40)
RECORD_KEYS = st.integers(min_value=0, max_value=record_keys.KEYS_MAX - 1)


@given(KEYS, KEYS, NUMBERS, RECORD_KEYS, st.booleans())
def test_records_of_compacted_topics(
    key: str, other: str, number: int, record_key: int, deletes: bool
) -> None:
    """Records of compacted topics, tombstones too, are decoded only in their own partition."""
    value = record_keys.value_of(number, record_key, deletes=deletes)
    assert (record_keys.key_of(value), record_keys.deletes(value)) == (record_key, deletes)
    written = payload.KEYED.encode(key, value)
    assert (written[1] is None) is deletes
    assert payload.KEYED.decode(key, *written) == value
    read = payload.KEYED.decode(other, *written)
    assert (read == value) is (key == other)
    assert read < 0 or key == other


@given(KEYS, st.none() | st.binary(max_size=16), st.none() | st.binary(max_size=24))
def test_foreign_bytes_of_compacted_topics_are_nobodys(
    key: str, record_key: bytes | None, told: bytes | None
) -> None:
    """Foreign bytes in the value or the header become negative numbers."""
    for read in (
        payload.KEYED.decode(key, record_key, told, []),
        payload.KEYED.decode(key, record_key, None, [("stands-for", told or b"")]),
    ):
        assert -(2**63) <= read < 0


def test_keys_of_a_compacted_topic_look_like_those_of_markers() -> None:
    """Record keys 0 and 1 have the bytes of control records: version 0, abort or commit."""
    first = [
        payload.KEYED.encode("x-0", record_keys.value_of(7, n, deletes=False))[0] for n in (0, 1)
    ]
    assert first == [b"\0\0\0\0", b"\0\0\0\1"]


def test_one_of_them_stands_for_none() -> None:
    """``NO_KEY`` is written as a record without a key, and read as one."""
    value = record_keys.value_of(7, record_keys.NO_KEY, deletes=False)
    record_key, record_value, headers = payload.KEYED.encode("x-0", value)
    assert record_key is None
    assert payload.KEYED.decode("x-0", None, record_value, headers) == value


def test_only_compacted_topics_have_keys_of_their_own() -> None:
    """Only topics with ``compact`` in their cleanup policy have record keys."""
    assert payload.form_of({"cleanup.policy": "compact,delete"}) is payload.KEYED
    assert payload.form_of({"replication.factor": "3"}) is payload.PLAIN
