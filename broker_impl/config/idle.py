"""Settings of topics that this broker accepts, stores and describes, and on which it does not act.

Kafka's tools set them: the tool that reassigns partitions sets the throttled replicas.
"""

from collections.abc import Mapping
from typing import Final

from broker_impl.config.setting import Setting
from broker_impl.kafka_settings import Kind

_REPLICAS: Final = r"|\*|\d+:\d+(\s*,\s*\d+:\d+)*"
_NOT_THROTTLED: Final = "Accepted without effect: this broker throttles no replication."


def _replicas(name: str) -> Setting:
    return Setting(
        field="",
        name=name,
        kind=Kind.LIST,
        default=(),
        doc=_NOT_THROTTLED,
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
IDLE_TOPIC_SETTINGS: Final[Mapping[str, Setting]] = {row.name: row for row in _ROWS}
"""By name; a broker has no settings of these names, so the fields are empty."""
