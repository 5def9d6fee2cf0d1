"""Quotas in ZooKeeper: ``/config/users/U``, ``/config/clients/C``, ``/config/users/U/clients/C``.

Names in paths are encoded as Kafka encodes them. A user's znode may have other settings, too.
"""

import logging
import math
from collections.abc import Mapping
from typing import Final

from broker_impl.api.quotas.entities import CLIENTS, USERS, Entity
from broker_impl.api.quotas.limits import MUTATIONS, Kind
from broker_impl.node import config_changes, zk_paths
from broker_impl.zookeeper.client import ZooKeeper
from broker_impl.zookeeper.errors import NodeExists, NoNode

LOG = logging.getLogger(__name__)

_KEYS: Final = (*Kind, MUTATIONS)

Quotas = dict[Entity, dict[str, float]]


async def read_all(zk: ZooKeeper) -> Quotas:
    """Return the quotas of every entity that has any, sorted by entity."""
    found = [Entity(None, name) for name in await _children(zk, CLIENTS)]
    for user in await _children(zk, USERS):
        found.append(Entity(user))
        below = f"{Entity(user).path}/{CLIENTS}"
        found += [Entity(user, name) for name in await _children(zk, below)]
    quotas = {entity: await read(zk, entity) for entity in found}
    return {entity: values for entity, values in quotas.items() if values}


async def read(zk: ZooKeeper, entity: Entity) -> dict[str, float]:
    """Return the quotas of one entity; invalid ones are left out and logged."""
    try:
        settings = await config_changes.read(zk, entity.path)
    except zk_paths.BadZnode as error:
        LOG.warning("quotas cannot be read and do not apply: %s", error)
        return {}
    return _quotas(entity, settings)


async def alter(zk: ZooKeeper, entity: Entity, change: config_changes.Alter, now_ms: int) -> None:
    """Write the settings that ``change`` returns, and announce them to all brokers."""
    if entity.user is None:
        await _ensure(zk, CLIENTS)
    else:
        await _ensure(zk, USERS)
        if entity.client_id is not None:
            empty = zk_paths.encode(zk_paths.ConfigZnode(config={}))
            await _ensure(zk, Entity(entity.user).path, empty)
            await _ensure(zk, f"{Entity(entity.user).path}/{CLIENTS}")
    await config_changes.alter(zk, entity.path, change, now_ms)


async def _children(zk: ZooKeeper, path: str) -> list[str]:
    try:
        return sorted(await zk.children(zk_paths.config(path)))
    except NoNode:
        return []


async def _ensure(zk: ZooKeeper, path: str, data: bytes = b"") -> None:
    try:
        await zk.create(zk_paths.config(path), data)
    except NodeExists:
        LOG.debug("the znode of %s already exists", path)


def _quotas(entity: Entity, settings: Mapping[str, str]) -> dict[str, float]:
    quotas = {}
    for key in _KEYS:
        if key in settings:
            value = _number(settings[key])
            if value > 0:
                quotas[str(key)] = value
            else:
                LOG.warning("%s: the quota %s=%s does not apply", entity.path, key, settings[key])
    return quotas


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        return math.nan
    return value if math.isfinite(value) else math.nan
