"""Toxiproxy's own counters: what it took in and what it passed on, per proxy and direction.

They are added up when a connection ends, in the order received, sent. What was received and never
sent was swallowed.
"""

import http.client
import re
from collections.abc import Mapping
from typing import Literal, NamedTuple

from harness.cluster.address import Address

Direction = Literal["upstream", "downstream"]
"""Towards the acceptor of a link, or back from it."""

_SAMPLE = re.compile(r"^toxiproxy_proxy_(received|sent)_bytes_total\{(.*)\} (\S+)$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')


class Passed(NamedTuple):
    """The bytes of one direction of one proxy."""

    received: int = 0
    sent: int = 0

    @property
    def swallowed(self) -> int:
        return self.received - self.sent


Counters = Mapping[tuple[str, Direction], Passed]
"""By proxy's name; a proxy that no connection has ended on is not in it."""


def counted(api: Address, timeout_s: float) -> Counters:
    """Ask the server; blocks. ``OSError`` when it does not answer as it should."""
    connection = http.client.HTTPConnection(api.host, api.port, timeout=timeout_s)
    try:
        connection.request("GET", "/metrics")
        answer = connection.getresponse()
        text = answer.read().decode()
    except http.client.HTTPException as error:
        raise OSError(f"/metrics: {error!r}") from error
    finally:
        connection.close()
    if answer.status != http.client.OK:
        raise OSError(f"/metrics: {answer.status} {answer.reason}")
    return parsed(text)


def parsed(text: str) -> Counters:
    """The counters in what Prometheus would be told."""
    counters: dict[tuple[str, Direction], Passed] = {}
    for kind, labels, number in _SAMPLE.findall(text):
        label = dict(_LABEL.findall(labels))
        direction: Direction = "upstream" if label["direction"] == "upstream" else "downstream"
        which = (label["proxy"], direction)
        counters[which] = counters.get(which, Passed())._replace(**{kind: int(float(number))})
    return counters


def swallowed(before: Counters, after: Counters, proxy: str, direction: Direction) -> int:
    """How many more bytes of one direction were swallowed meanwhile."""
    nothing = Passed()
    which = (proxy, direction)
    return after.get(which, nothing).swallowed - before.get(which, nothing).swallowed
