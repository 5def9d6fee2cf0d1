"""Subscriptions in the answers to the members of one generation, with made up requests."""

from checkers.invariants.subscriptions import Joined, Subscriptions

SENT = {"range": b"1", "roundrobin": b"2"}
LISTED = {"a": b"1", "b": b"1"}


def answer(
    member: str,
    generation: int = 3,
    *,
    protocol: str = "range",
    sent: dict[str, bytes] = SENT,
    listed: dict[str, bytes] | None = None,
) -> Joined:
    """Return the answer to a member of a group whose leader is a."""
    return Joined(member, generation, "a", protocol, sent, listed or {})


def test_the_leader_receives_what_members_have_sent() -> None:
    """Whether the leader is answered before the other member or after it."""
    for order in (("a", "b"), ("b", "a")):
        for own, found in ((SENT, 0), ({"range": b"9"}, 1)):
            subscriptions = Subscriptions()
            whys = [
                why
                for member in order
                for why in subscriptions.joined(
                    "g",
                    answer(member, listed=LISTED) if member == "a" else answer(member, sent=own),
                )
            ]
            assert len(whys) == found
            assert all("another subscription than b" in why for why in whys)


def test_the_leader_receives_all_members() -> None:
    """A member is in a generation of which the leader does not know it."""
    subscriptions = Subscriptions()
    assert list(subscriptions.joined("g", answer("a", listed={"a": b"1"}))) == []
    [why] = subscriptions.joined("g", answer("b"))
    assert "not in the leader's list" in why
    assert list(subscriptions.joined("g", answer("b", 4))) == []


def test_members_support_the_protocol_of_their_generation() -> None:
    """It is one that a member has sent, and the same for all."""
    subscriptions = Subscriptions()
    [why] = subscriptions.joined("g", answer("b", protocol="sticky"))
    assert "does not support" in why
    assert list(subscriptions.joined("g", answer("b"))) == []
    [why] = subscriptions.joined("g", answer("a", protocol="roundrobin"))
    assert "received protocol roundrobin, others range" in why
    assert list(subscriptions.joined("h", answer("a", protocol="roundrobin"))) == []


def test_nothing_is_compared_after_a_static_member_was_replaced() -> None:
    """Its new member id is not one that the leader has received."""
    subscriptions = Subscriptions()
    assert list(subscriptions.joined("g", answer("a", listed=LISTED))) == []
    subscriptions.forget("g")
    assert list(subscriptions.joined("g", answer("c"))) == []
    assert len(list(subscriptions.joined("g", answer("c", protocol="sticky")))) == 1
