"""The byte counters of Toxiproxy: bytes received and sent, by proxy and direction.

Toxiproxy updates the counters when a connection ends, first the received bytes, then the sent ones.
Bytes that it has received and not sent were dropped ("swallowed").
"""

import http.client
import re
from collections.abc import Mapping
from typing import Literal, NamedTuple

from harness.cluster.address import Address

Direction = Literal["upstream", "downstream"]
"""``upstream``: to the host that accepted the connection; ``downstream``: back from it."""

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
"""Keyed by the proxy's name and the direction; proxies without an ended connection are absent."""


def counted(api: Address, timeout_s: float) -> Counters:
    """Request the counters from Toxiproxy; this call blocks.

    Raises ``OSError`` if Toxiproxy does not send a valid response.
    """
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
    """Parse the counters in Toxiproxy's response, which has Prometheus's text format."""
    counters: dict[tuple[str, Direction], Passed] = {}
    for kind, labels, number in _SAMPLE.findall(text):
        label = dict(_LABEL.findall(labels))
        direction: Direction = "upstream" if label["direction"] == "upstream" else "downstream"
        which = (label["proxy"], direction)
        counters[which] = counters.get(which, Passed())._replace(**{kind: int(float(number))})
    return counters


def swallowed(before: Counters, after: Counters, proxy: str, direction: Direction) -> int:
    """Return the bytes of one direction that Toxiproxy dropped between two readings."""
    nothing = Passed()
    which = (proxy, direction)
    return after.get(which, nothing).swallowed - before.get(which, nothing).swallowed
