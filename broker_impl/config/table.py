"""The table of all settings on which this broker acts, made of the settings of each topic."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_origin, get_type_hints

from broker_impl.config.coordinators import GroupSettings, TransactionSettings
from broker_impl.config.log import LogSettings
from broker_impl.config.network import ConnectionSettings, IdentitySettings
from broker_impl.config.quotas import QuotaSettings
from broker_impl.config.replication import ControllerSettings, ReplicationSettings
from broker_impl.config.security import SecuritySettings
from broker_impl.config.setting import Setting
from broker_impl.config.topics import TopicSettings
from broker_impl.kafka_settings import Kind


@dataclass(frozen=True, kw_only=True)
class AllSettings(
    # Dataclasses take the fields of their last base first.
    ControllerSettings,
    QuotaSettings,
    ReplicationSettings,
    TransactionSettings,
    GroupSettings,
    LogSettings,
    TopicSettings,
    SecuritySettings,
    ConnectionSettings,
    IdentitySettings,
):
    """Every setting as a typed field. Times are milliseconds, sizes bytes, -1 no limit."""


def _settings() -> dict[str, Setting]:
    types = get_type_hints(AllSettings)
    rows = {}
    for item in dataclasses.fields(AllSettings):
        meta = dict(item.metadata)
        meta["kind"] = meta["kind"] or _kind(types[item.name])
        row = Setting(field=item.name, default=item.default, **meta)
        rows[row.name] = row
    return rows


def _kind(field_type: Any) -> Kind:
    if get_origin(field_type) is tuple:
        return Kind.LIST
    kinds = {bool: Kind.BOOLEAN, int: Kind.INT, float: Kind.DOUBLE, str: Kind.STRING}
    return kinds[field_type]


SETTINGS: Mapping[str, Setting] = _settings()
"""Broker-level name to setting."""
TOPIC_SETTINGS: Mapping[str, Setting] = {s.topic: s for s in SETTINGS.values() if s.topic}
"""Topic-level name to the broker's setting that it overrides."""
