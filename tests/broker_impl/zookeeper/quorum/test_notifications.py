"""Notifications of elections are read in every version, and greetings in every form."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_impl.errors import WireError
from broker_impl.zookeeper.quorum import notifications
from broker_impl.zookeeper.quorum.notifications import Greeting, Notification, State, Vote

LONGS = st.integers(-(2**63), 2**63 - 1)
NOTIFICATIONS = st.builds(
    Notification,
    sender=st.integers(1, 254),
    state=st.sampled_from(State),
    vote=st.builds(Vote, LONGS, LONGS, LONGS),
    round=LONGS,
)


@given(NOTIFICATIONS, st.text(max_size=40))
def test_a_notification_is_read_back(notification: Notification, configuration: str) -> None:
    """A notification survives encoding; its length covers the configuration."""
    data = notifications.encode(notification, configuration)
    (length,) = struct.unpack_from(">i", data)
    assert length == len(data) - 4
    assert notifications.decode(data[4:], notification.sender) == notification
    assert data.endswith(configuration.encode())


def test_the_layout_is_that_of_version_two() -> None:
    """State, leader, zxid, round, epoch, version, and the configuration with its length."""
    notification = Notification(1, State.LEADING, Vote(5, 0x400000003, 2), 7)
    data = notifications.encode(notification, "cfg")
    assert data == struct.pack(">iiqqqqii", 43 + 4, 2, 2, 0x400000003, 7, 5, 2, 3) + b"cfg"


def test_the_oldest_version_has_no_epoch() -> None:
    """Releases before 3.4 send 28 bytes: the epoch is that of the zxid."""
    body = struct.pack(">iqqq", State.FOLLOWING, 2, 0x500000001, 9)
    assert notifications.decode(body, 3) == Notification(
        3, State.FOLLOWING, Vote(5, 0x500000001, 2), 9
    )


def test_version_one_has_an_epoch_and_no_configuration() -> None:
    """Releases before 3.5 send 36 or 40 bytes, with an epoch that may differ from the zxid's."""
    body = struct.pack(">iqqqq", State.LOOKING, 2, 0x500000001, 9, 6)
    expected = Notification(3, State.LOOKING, Vote(6, 0x500000001, 2), 9)
    assert notifications.decode(body, 3) == expected
    assert notifications.decode(body + struct.pack(">i", 1), 3) == expected


@pytest.mark.parametrize(
    "body", [b"", bytes(27), struct.pack(">iqqq", 4, 1, 1, 1), struct.pack(">iqqq", -1, 1, 1, 1)]
)
def test_a_malformed_notification_is_refused(body: bytes) -> None:
    """A notification that is too short or has an unknown state raises WireError."""
    with pytest.raises(WireError):
        notifications.decode(body, 1)


@given(st.integers(1, 254), st.text(max_size=20), st.binary(max_size=10))
def test_a_greeting_is_read_when_it_is_whole(sender: int, address: str, more: bytes) -> None:
    """A greeting is read once all of its bytes are there; what follows it is not taken."""
    greeting = notifications.encode_greeting(sender, address)
    for size in range(len(greeting)):
        assert notifications.decode_greeting(greeting[:size]) is None
    assert notifications.decode_greeting(greeting + more) == Greeting(sender, len(greeting))


def test_the_oldest_greeting_is_only_an_id() -> None:
    """Releases before 3.4.6 send the id alone."""
    assert notifications.decode_greeting(struct.pack(">q", 3) + b"rest") == Greeting(3, 8)


def test_a_greeting_with_several_addresses_is_read() -> None:
    """Version -65535 lists addresses that are separated by a bar."""
    text = b"a:1|b:2"
    data = struct.pack(">qqi", -65535, 4, len(text)) + text
    assert notifications.decode_greeting(data) == Greeting(4, len(data))


@pytest.mark.parametrize(
    "data",
    [
        struct.pack(">q", -65534),
        struct.pack(">qqi", -65536, 1, -1),
        struct.pack(">qqi", -65536, 1, notifications.BYTES_MAX + 1),
    ],
    ids=["unknown version", "negative length", "too long"],
)
def test_a_malformed_greeting_is_refused(data: bytes) -> None:
    """A greeting of an unknown version or with an impossible length raises WireError."""
    with pytest.raises(WireError):
        notifications.decode_greeting(data)
