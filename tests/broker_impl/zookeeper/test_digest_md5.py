"""DIGEST-MD5: the example of RFC 2831, both sides with each other, and what is refused."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_impl.zookeeper import digest_md5
from broker_impl.zookeeper.digest_md5 import ClientExchange, Login, ServerExchange
from broker_impl.zookeeper.errors import AuthFailed

BOB = Login("bob", 'b-"secret\\')
CHRIS = Login("chris", "secret")
TEXT = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), min_size=1)


def server() -> ServerExchange:
    return ServerExchange({BOB.user: BOB.password}, lambda: "nonce-1")


def test_the_example_of_the_rfc() -> None:
    """The proofs of client and server in RFC 2831, section 4."""
    sent = {
        "realm": "elwood.innosoft.com",
        "nonce": "OA6MG9tEQGm2hh",
        "cnonce": "OA6MHXh6VqTrRk",
        "nc": "00000001",
        "qop": "auth",
        "digest-uri": "imap/elwood.innosoft.com",
    }
    proof = digest_md5.hashed(CHRIS, sent, "AUTHENTICATE")
    assert proof == "d388dad90d4bbd760a152321f2143af7"
    assert digest_md5.hashed(CHRIS, sent, "") == "ea40f60335c427b5527b84dbabcdfffd"


@given(user=TEXT, password=TEXT)
def test_both_sides_prove_that_they_know_the_password(user: str, password: str) -> None:
    """Any user and password work; the client checks the server's proof, too."""
    exchange = ServerExchange({user: password}, lambda: "nonce")
    client = ClientExchange(Login(user, password), "cnonce")
    answer = exchange.step(client.response(exchange.step(b"")))
    assert exchange.user == user
    client.check(answer)
    with pytest.raises(AuthFailed, match="the server has not proved"):
        client.check(answer[:-1] + b"?")


@pytest.mark.parametrize(
    "login", [Login("bob", "other"), Login("bob", ""), Login("eve", BOB.password), Login("eve", "")]
)
def test_a_wrong_login_is_refused(login: Login) -> None:
    """An unknown user is refused like a wrong password, also with the empty one."""
    exchange = server()
    with pytest.raises(AuthFailed, match="is wrong"):
        exchange.step(ClientExchange(login, "cnonce").response(exchange.step(b"")))
    assert exchange.user is None


@pytest.mark.parametrize(
    "changed",
    [
        lambda token: token.replace(b"nonce-1", b"nonce-2"),  # of another exchange
        lambda token: token.replace(b"nc=00000001", b"nc=00000002"),
        lambda token: token.replace(b"zookeeper/", b"imap/"),
        lambda token: token.replace(b'realm="zk-sasl-md5"', b'realm="other"'),
        lambda token: token.replace(b"qop=auth", b"qop=auth-int"),
        lambda token: token + b',authzid="super"',
        lambda token: token + b',username="bob"',  # a field twice
        lambda token: token.replace(b"cnonce", b"xnonce"),  # a field is missing
        lambda token: token.replace(b"username=", b"username"),
        lambda token: token + b"\xff",
        lambda token: b"",
    ],
)
def test_another_response_is_refused(changed: Callable[[bytes], bytes]) -> None:
    """Whatever is changed in a right response, the user is not authenticated."""
    exchange = server()
    token = ClientExchange(BOB, "cnonce").response(exchange.step(b""))
    with pytest.raises(AuthFailed):
        exchange.step(changed(token))
    assert exchange.user is None


def test_tokens_have_an_order() -> None:
    """A response needs a challenge, and an exchange that has ended is not continued."""
    with pytest.raises(AuthFailed, match="out of order"):
        server().step(b"username=bob")
    exchange = server()
    token = ClientExchange(BOB, "cnonce").response(exchange.step(b""))
    exchange.step(token)
    for again in (token, b""):
        with pytest.raises(AuthFailed, match="out of order"):
            exchange.step(again)
    assert exchange.user == BOB.user


def test_a_challenge_needs_a_nonce() -> None:
    """The client refuses a challenge that it cannot answer."""
    with pytest.raises(AuthFailed, match="no nonce"):
        ClientExchange(BOB, "cnonce").response(b"realm=zk-sasl-md5")
