import base64

import pytest

from broker_impl.security import scram

# RFC 7677, section 3
FIRST = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
SERVER_NONCE = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
CHALLENGE = "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
FINAL = (
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
    b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
)
VERIFIER = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def known(mechanism: str = "SCRAM-SHA-256", password: str = "pencil") -> scram.Credential:
    return scram.credential(mechanism, scram.salted(mechanism, password, SALT, 4096), SALT, 4096)


def exchange() -> scram.ServerExchange:
    return scram.ServerExchange("SCRAM-SHA-256", scram.ClientFirst(FIRST), known(), SERVER_NONCE)


def test_the_server_answers_as_in_the_rfc() -> None:
    """The server's messages are those of the example in RFC 7677."""
    server = exchange()
    assert server.user == "user"
    assert server.challenge == CHALLENGE
    assert server.finish(FINAL) == VERIFIER


def test_the_client_answers_as_in_the_rfc() -> None:
    """The client's messages are those of the example in RFC 7677."""
    client = scram.ClientExchange("SCRAM-SHA-256", "user", "pencil", "rOprNGfwEbeRWgbNEkqO")
    assert client.first == FIRST
    assert client.answer(CHALLENGE.encode()) == FINAL
    client.verify(VERIFIER)
    with pytest.raises(scram.ScramError, match="does not have the user's credential"):
        client.verify(VERIFIER.replace(b"6rri", b"7rri"))


@pytest.mark.parametrize("mechanism", scram.HASHES)
@pytest.mark.parametrize("user", ["a", "a,b=c", "Ä"])
def test_both_sides_agree(mechanism: str, user: str) -> None:
    """A client with the password passes, for any name; one with another password does not."""
    for password in ("pencil", "pencils"):
        client = scram.ClientExchange(mechanism, user, password, "abc")
        first = scram.ClientFirst(client.first)
        assert first.user == user
        server = scram.ServerExchange(mechanism, first, known(mechanism), "def")
        final = client.answer(server.challenge.encode())
        if password == "pencil":
            client.verify(server.finish(final))
        else:
            with pytest.raises(scram.ScramError, match="the password is wrong"):
                server.finish(final)


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"p=tls-unique,,n=user,r=abc",
        b"n,a=other,n=user,r=abc",
        b"n,,n=us=er,r=abc",
        b"n,,n=user,r=",
        b"n,,n=user,r=\xc3\xa4",
        b"n,,n=user,r=\xff",
    ],
)
def test_an_invalid_first_message_is_refused(message: bytes) -> None:
    """Channel binding, another identity, and names or nonces that are not valid are refused."""
    with pytest.raises(scram.ScramError):
        scram.ClientFirst(message)
    assert scram.ClientFirst(b"n,a=user,n=user,r=abc").user == "user"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"c=biws", b"c=eSws"),  # the header "y,,", which the first message did not have
        (b"hNlF$k0", b"hNlF$k1"),  # another nonce
        (b"p=dHz", b"p=eHz"),  # another proof
        (b"dHzbZapW", b"dHzb"),  # a short proof
        (b"p=dHz", b"p=!Hz"),  # no base64
        (b"c=biws,", b""),
    ],
)
def test_a_changed_final_message_is_refused(old: bytes, new: bytes) -> None:
    """Every part of the final message is verified."""
    assert old in FINAL
    with pytest.raises(scram.ScramError):
        exchange().finish(FINAL.replace(old, new))


@pytest.mark.parametrize(
    "challenge",
    [
        CHALLENGE.replace("rOpr", "sOpr"),  # another client's nonce
        CHALLENGE.replace("i=4096", "i=4095"),
        CHALLENGE.replace("i=4096", "i=16385"),
        "e=other-error",
    ],
)
def test_a_client_refuses_an_invalid_challenge(challenge: str) -> None:
    """A server cannot lower the number of iterations, nor raise it without a limit."""
    client = scram.ClientExchange("SCRAM-SHA-256", "user", "pencil", "rOprNGfwEbeRWgbNEkqO")
    with pytest.raises(scram.ScramError):
        client.answer(challenge.encode())


def test_credentials_are_written_as_kafka_writes_them() -> None:
    """The text has the parts and the order of Kafka's ScramCredentialUtils, and is read back."""
    text = known().format()
    names = [part.partition("=")[0] for part in text.split(",")]
    assert names == ["salt", "stored_key", "server_key", "iterations"]
    assert scram.parse_credential(text) == known()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "salt=YQ==,stored_key=YQ==,server_key=YQ==",
        "salt=YQ==,stored_key=YQ==,server_key=YQ==,iterations=many",
        "salt=?,stored_key=YQ==,server_key=YQ==,iterations=4096",
    ],
)
def test_a_damaged_credential_is_refused(text: str) -> None:
    """A credential without a part, or with an invalid one, raises ScramError."""
    with pytest.raises(scram.ScramError):
        scram.parse_credential(text)
