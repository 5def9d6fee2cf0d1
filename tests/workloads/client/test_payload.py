"""Records that name themselves."""

from hypothesis import given
from hypothesis import strategies as st

from workloads.client import payload

KEYS = st.from_regex(r"[a-z]{1,8}-[0-9]{1,3}", fullmatch=True)
VALUES = st.integers(min_value=0, max_value=2**63 - 1)


@given(KEYS, VALUES)
def test_round_trip(key: str, value: int) -> None:
    """What was written for a partition reads as the same number there."""
    assert payload.decode(key, *payload.encode(key, value)) == value


@given(KEYS, KEYS, VALUES)
def test_another_partitions_record_is_nobodys(key: str, other: str, value: int) -> None:
    """A record that turns up in another partition reads as a number nobody wrote."""
    read = payload.decode(other, *payload.encode(key, value))
    assert (read == value) is (key == other)
    assert read < 0 or key == other


@given(KEYS, st.none() | st.binary(max_size=16), st.none() | st.binary(max_size=16))
def test_foreign_bytes_are_nobodys(
    key: str, record_key: bytes | None, record_value: bytes | None
) -> None:
    """Whatever bytes are there, reading never fails, and gives a number that 64 bits hold."""
    read = payload.decode(key, record_key, record_value)
    assert -(2**63) <= read < 2**63
    if record_key != key.encode() or record_value is None or len(record_value) != 8:
        assert read < 0
