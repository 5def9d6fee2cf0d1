"""The clients of workloads whose processes neither join groups nor use transactions."""

from collections.abc import Callable, Mapping

from model.roles import Client
from workloads.client import aio, confluent
from workloads.client.common import Settings

Make = Callable[[Settings], Client]
"""Makes the client of a process."""
Refusal = Callable[[Mapping[str, str], Mapping[str, str]], str | None]
"""Returns why settings of producer and consumer are rejected, or ``None``."""


CLIENTS: Mapping[str, tuple[Make, Refusal]] = {
    "librdkafka": (confluent.ConfluentClient, confluent.refusal),
    "aiokafka": (aio.AioClient, aio.refusal),
}
"""The clients, by the value of the option ``client``."""
