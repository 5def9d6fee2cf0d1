"""Judges whether a session is given only to the client that has its password."""

from collections.abc import Iterator

from checkers.kernels.found import Found
from checkers.zookeeper.calls import History


def stolen(history: History) -> Iterator[Found]:
    """Find sessions that a server gave to a client with a wrong password."""
    for call in history.of("intrude"):
        if call.ok and call.value.get("granted"):
            yield Found(
                anomaly="zk-session-stolen",
                key=call.place or None,
                ops=(call.op,),
                why=f"the server of event {call.op} gave the session {call.value['victim']:#x} to a"
                " client with a wrong password",
            )
