import pytest

from broker_impl.zookeeper import acl
from broker_impl.zookeeper.errors import AuthFailed, NoAuth
from broker_impl.zookeeper.records import OPEN_ACL, Acl, Id, Perm

HOST = Id("ip", "127.0.0.1")


def test_digest_is_what_other_clients_compute() -> None:
    """user:base64(sha1(user:password)), the value that ZooKeeper's documentation shows."""
    assert acl.identify("digest", b"super:admin") == Id(
        "digest", "super:xQJmxLMiHGwaqBvst5y6rkB6HQs="
    )


@pytest.mark.parametrize(("scheme", "auth"), [("digest", b"nobody"), ("kerberos", b"a:b")])
def test_other_credentials_prove_nothing(scheme: str, auth: bytes) -> None:
    """No password, or a scheme that is not known."""
    with pytest.raises(AuthFailed):
        acl.identify(scheme, auth)


@pytest.mark.parametrize(
    ("entries", "perm", "allowed"),
    [
        (OPEN_ACL, Perm.ADMIN, True),
        ((Acl(Perm.READ, Id("world", "anyone")),), Perm.READ, True),
        ((Acl(Perm.READ, Id("world", "anyone")),), Perm.WRITE, False),
        ((Acl(Perm.WRITE, HOST),), Perm.WRITE, True),
        ((Acl(Perm.WRITE, Id("ip", "127.0.0.2")),), Perm.WRITE, False),
        ((Acl(Perm.READ, HOST), Acl(Perm.WRITE, Id("digest", "a:b"))), Perm.WRITE, False),
    ],
)
def test_an_entry_allows_its_permissions_to_its_identity(
    entries: tuple[Acl, ...], perm: Perm, allowed: bool
) -> None:
    """One entry must hold both: the identity and the permission."""
    assert acl.may(entries, perm, (HOST,)) is allowed
    if not allowed:
        with pytest.raises(NoAuth):
            acl.check(entries, perm, (HOST,), "/a")


def test_digests_are_hidden() -> None:
    """Without ADMIN one sees who, not the digest."""
    entries = (Acl(Perm.READ, Id("digest", "alice:secret")), *OPEN_ACL)
    assert acl.masked(entries) == (Acl(Perm.READ, Id("digest", "alice:x")), *OPEN_ACL)
