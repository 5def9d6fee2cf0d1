import pytest

from broker_impl.zookeeper import acl
from broker_impl.zookeeper.errors import AuthFailed, InvalidAcl, NoAuth
from broker_impl.zookeeper.records import OPEN_ACL, Acl, Id, Perm

HOST = Id("ip", "127.0.0.1")


def test_digest_is_what_other_clients_compute() -> None:
    """A digest is user:base64(sha1(user:password)), as in ZooKeeper's documentation."""
    assert acl.identify("digest", b"super:admin", (HOST,)) == Id(
        "digest", "super:xQJmxLMiHGwaqBvst5y6rkB6HQs="
    )


@pytest.mark.parametrize(
    ("auth", "identity"),
    [
        (b"alice", "alice:UisnajVr3zkBPfq+os1D4UHsyeg="),
        (b"alice:a:b", "alice:VPqXOa8rQli3XMm1B9tdlwTaY50="),
        (b"alice:\xff", "alice:A0lPxeTQL7DFPpNG/Op/IBlsp+4="),
        (b"", ":2jmj7l5rSw0yVb/vlWAYkK/YBwk="),
    ],
)
def test_digest_credentials_need_no_password(auth: bytes, identity: str) -> None:
    """Like ZooKeeper, the server hashes whatever the client sent, read as UTF-8."""
    assert acl.identify("digest", auth, (HOST,)) == Id("digest", identity)


@pytest.mark.parametrize("auth", [b"", b"10.0.0.1", None])
def test_ip_credentials_are_the_address_of_the_connection(auth: bytes | None) -> None:
    """A client cannot claim another address: the server ignores what it sent."""
    assert acl.identify("ip", auth, (HOST,)) == HOST


@pytest.mark.parametrize(
    ("scheme", "auth"),
    [("digest", None), ("kerberos", b"a:b"), ("world", b"anyone"), ("auth", b""), ("", b"a:b")],
)
def test_other_credentials_are_refused(scheme: str, auth: bytes | None) -> None:
    """The server has no provider for these schemes; a digest needs bytes."""
    with pytest.raises(AuthFailed):
        acl.identify(scheme, auth, (HOST,))


@pytest.mark.parametrize(
    ("entries", "perm", "allowed"),
    [
        (OPEN_ACL, Perm.ADMIN, True),
        ((Acl(Perm.READ, Id("world", "anyone")),), Perm.READ, True),
        ((Acl(Perm.READ, Id("world", "anyone")),), Perm.WRITE, False),
        ((Acl(Perm.WRITE, HOST),), Perm.WRITE, True),
        ((Acl(Perm.WRITE, Id("ip", "127.0.0.2")),), Perm.WRITE, False),
        ((Acl(Perm.WRITE, Id("ip", "127.0.0.0/8")),), Perm.WRITE, True),
        ((Acl(Perm.WRITE, Id("ip", "127.0.0.0/8")),), Perm.READ, False),
        ((Acl(Perm.WRITE, Id("digest", "127.0.0.1")),), Perm.WRITE, False),
        ((Acl(Perm.READ, HOST), Acl(Perm.WRITE, Id("digest", "a:b"))), Perm.WRITE, False),
    ],
)
def test_an_entry_allows_its_permissions_to_its_identity(
    entries: tuple[Acl, ...], perm: Perm, allowed: bool
) -> None:
    """An entry allows an operation if it has both the identity and the permission."""
    assert acl.may(entries, perm, (HOST,)) is allowed
    if not allowed:
        with pytest.raises(NoAuth):
            acl.check(entries, perm, (HOST,), "/a")


def test_digests_are_hidden() -> None:
    """Without ADMIN permission a client sees the users of digest entries, not their digests."""
    entries = (Acl(Perm.READ, Id("digest", "alice:secret")), *OPEN_ACL)
    assert acl.masked(entries) == (Acl(Perm.READ, Id("digest", "alice:x")), *OPEN_ACL)


@pytest.mark.parametrize(
    ("scheme", "text"),
    [
        ("world", "anyone"),
        ("digest", "alice:digest"),
        ("digest", ":digest"),
        ("digest", "alice:digest::"),
        ("ip", "127.0.0.1"),
        ("ip", "10.0.0.0/8"),
        ("ip", "fe80::/10"),
    ],
)
def test_valid_ids_are_kept_as_they_were_sent(scheme: str, text: str) -> None:
    """The server stores the client's text, and does not normalise it."""
    entry = Acl(Perm.ALL, Id(scheme, text))
    assert acl.resolve((entry,), (HOST,), "/a") == (entry,)


@pytest.mark.parametrize(
    ("scheme", "text"),
    [
        ("world", ""),
        ("world", "everyone"),
        ("auth", ""),
        ("digest", ""),
        ("digest", "alice"),
        ("digest", "alice:"),
        ("digest", ":"),
        ("digest", "a:b:c"),
        ("ip", ""),
        ("ip", "300.1.1.1"),
        ("ip", "127.0.0.1/33"),
        ("ip", "localhost"),
        ("sasl", "alice@a@b"),
        ("x509", "CN=alice"),
        ("IP", "127.0.0.1"),
        ("", ""),
    ],
)
def test_an_invalid_id_is_refused(scheme: str, text: str) -> None:
    """One invalid entry refuses the whole ACL.

    A client whose only identity is its address cannot use `auth`.
    """
    with pytest.raises(InvalidAcl):
        acl.resolve((*OPEN_ACL, Acl(Perm.ALL, Id(scheme, text))), (HOST,), "/a")
