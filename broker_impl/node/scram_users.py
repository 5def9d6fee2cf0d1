"""SCRAM credentials in ZooKeeper: ``/config/users/NAME``, as Kafka writes them (KIP-84)."""

import logging
from collections.abc import Mapping
from urllib.parse import unquote

from broker_impl.api.quotas.entities import USERS, Entity, encoded
from broker_impl.node import config_changes, zk_paths
from broker_impl.security import scram
from broker_impl.zookeeper.client import ZooKeeper
from broker_impl.zookeeper.errors import NoNode

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
