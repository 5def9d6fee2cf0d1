"""SCRAM credentials in ZooKeeper: ``/config/users/NAME``, as Kafka writes them (KIP-84)."""

import logging
from collections.abc import Mapping
from urllib.parse import unquote

from broker_impl.api.quotas.entities import USERS, Entity, encoded
from broker_impl.node import change_notices, config_changes, zk_paths
from broker_impl.security import scram
from broker_impl.zookeeper.client import ZooKeeper
from broker_impl.zookeeper.errors import NoNode
from broker_impl.zookeeper.multi import Create, SetData

LOG = logging.getLogger(__name__)


def entity(user: str) -> str:
    """Return the entity of a user's settings: the name as Kafka's Sanitizer encodes it."""
    return Entity(encoded(user)).path


def user_of(name: str) -> str:
    """Return the user of a znode's name."""
    return unquote(name)


def credentials(user: str, settings: Mapping[str, str]) -> dict[str, scram.Credential]:
    """Return the credentials among a user's settings; damaged ones are left out and logged."""
    known = {}
    for mechanism in scram.HASHES:
        if mechanism not in settings:
            continue
        try:
            known[mechanism] = scram.parse_credential(settings[mechanism])
        except scram.ScramError as error:
            LOG.warning("the %s credential of user %s is not valid: %s", mechanism, user, error)
    return known


async def alter(zk: ZooKeeper, user: str, change: config_changes.Alter, now_ms: int) -> None:
    """Write the settings that ``change`` returns and announce them, in one transaction.

    So a credential that is deleted by a broker that crashes meanwhile is deleted for all brokers,
    or for none. A concurrent change is not lost: the settings are read again.
    """
    path = zk_paths.config(entity(user))
    notice = zk_paths.encode(zk_paths.ConfigChangeZnode(entity_path=entity(user)))
    announcement = Create(zk_paths.CONFIG_CHANGE_PREFIX, notice, sequential=True)
    while True:
        write: Create | SetData
        try:
            data, stat = await zk.get(path)
            before = zk_paths.decode(path, data, zk_paths.ConfigZnode).config
            after = zk_paths.ConfigZnode(config=change(before))
            write = SetData(path, zk_paths.encode(after), stat.version)
        except NoNode:
            write = Create(path, zk_paths.encode(zk_paths.ConfigZnode(config=change({}))))
        if await change_notices.announce(zk, write, announcement):
            await change_notices.forget_old(zk, zk_paths.CONFIG_CHANGES, now_ms)
            return


async def read(zk: ZooKeeper, user: str) -> dict[str, scram.Credential]:
    """Read the credentials of one user."""
    try:
        return credentials(user, await config_changes.read(zk, entity(user)))
    except zk_paths.BadZnode as error:
        LOG.warning("the credentials of user %s cannot be read: %s", user, error)
        return {}


async def read_all(zk: ZooKeeper) -> dict[str, dict[str, scram.Credential]]:
    """Read the credentials of all users that have any."""
    try:
        names = await zk.children(zk_paths.config(USERS))
    except NoNode:
        return {}
    found = {}
    for name in sorted(names):
        user = user_of(name)
        known = await read(zk, user)
        if known:
            found[user] = known
    return found
