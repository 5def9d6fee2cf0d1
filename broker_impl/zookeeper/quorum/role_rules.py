"""What a server does between two roles: it serves no clients, and has the state of its log."""

from broker_impl.zookeeper.history import History
from broker_impl.zookeeper.server import Server


def leave(server: Server, history: History) -> None:
    """End a role: close the clients' connections, and apply what the log has (ZOOKEEPER-2845)."""
    server.suspend()
    history.settle()
