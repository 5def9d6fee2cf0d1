"""Bugs in how clients are authenticated, and in how long that is valid."""

from broker_impl.mutants import mutant
from broker_impl.security.sessions import TRANSITIONS, Event, State


@mutant(
    "login-never-expires",
    of="broker_impl.security.sessions:is_expired",
    source="KIP-368",
    kind="mutation",
    symptom="invariant:expired-login-served",
    schedule="A client stays connected for longer than `connections.max.reauth.ms`, and does not "
    "authenticate again.",
)
def is_expired(since: float | None, lifetime_s: float, now: float) -> bool:
    """The broker announces how long an authentication is valid, and never ends it.

    Brokers before Kafka 2.2 behaved like this. A client whose password was changed or deleted is
    served as long as it keeps its connection.
    """
    return False


@mutant(
    "served-while-it-authenticates-again",
    of="broker_impl.security.sessions:following",
    source="KIP-368",
    kind="mutation",
    symptom="invariant:expired-login-served",
    schedule="A client chooses its mechanism again after its login has expired, and sends other "
    "requests in place of the tokens.",
)
def following(state: State, event: Event) -> State | None:
    """Requests are answered between the handshake and the end of the second authentication.

    The time limit is checked for authenticated clients, and a client that authenticates again is
    not one of them. So a client that only ever begins is served without end.
    """
    if (state, event) == (State.AGAIN, Event.OTHER):
        return State.AGAIN
    return TRANSITIONS.get((state, event))


@mutant(
    "proof-of-password-unchecked",
    of="broker_impl.security.scram:proves",
    source="KIP-84, RFC 5802",
    kind="mutation",
    symptom="invariant:wrong-password-accepted",
    schedule="A client logs in by a wrong password.",
)
def proves(mechanism: str, stored_key: bytes, messages: bytes, proof: bytes) -> bool:
    """The broker checks that the client's proof has the right length, and not what it proves.

    Every password is accepted for a user that has a credential. Clients whose password an operator
    has changed stay connected and can do what they could before.
    """
    return len(proof) == len(stored_key)
