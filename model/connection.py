"""How clients reach a cluster, and which part of its names belongs to them."""

from collections.abc import Mapping
from typing import NamedTuple


class Connection(NamedTuple):
    """What a client must know of a cluster."""

    bootstrap: str
    """``host:port,…``."""
    properties: Mapping[str, str] = {}
    """Settings that every client needs, by librdkafka's names: encryption and authentication."""
    prefix: str = ""
    """The beginning of the names of topics, groups and transactional ids on the brokers.

    Histories and plans have the names without it. It is empty where the cluster has no other users.
    """
