"""Settings of topics that brokers have no default for.

Kafka's tools set them: the tool that reassigns partitions sets the throttled replicas.
"""

from collections.abc import Mapping
from typing import Final

from broker_impl.config.setting import Setting
from broker_impl.kafka_settings import Kind

_REPLICAS: Final = r"|\*|\d+:\d+(\s*,\s*\d+:\d+)*"
_THROTTLED: Final = "Replicas whose replication is limited (KIP-73): *, or partition:broker, …"


def _replicas(name: str) -> Setting:
    return Setting(
        field="",
        name=name,
        kind=Kind.LIST,
        default=(),
        doc=_THROTTLED,
        topic=name,
        pattern=_REPLICAS,
        form="* or a list of partition:broker",
    )


_ROWS: Final = (
    _replicas("follower.replication.throttled.replicas"),
    _replicas("leader.replication.throttled.replicas"),
    Setting(
        field="",
        name="preallocate",
        kind=Kind.BOOLEAN,
        default=False,
        doc="Accepted without effect: files grow as records are appended.",
        topic="preallocate",
    ),
)
TOPIC_ONLY_SETTINGS: Final[Mapping[str, Setting]] = {row.name: row for row in _ROWS}
"""By name; a broker has no settings of these names, so the fields are empty."""
