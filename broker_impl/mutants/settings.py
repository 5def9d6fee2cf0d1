"""Bugs in how brokers keep the settings of topics that are stored in ZooKeeper."""

from collections.abc import Collection, Sequence

from broker_impl.mutants import mutant
from broker_impl.node import change_notices, config_changes, zk_paths
from broker_impl.node.config_changes import Alter
from broker_impl.zookeeper.client import ZooKeeper
from broker_impl.zookeeper.multi import Create, SetData


@mutant(
    "settings-newest-notice-only",
    of="broker_impl.node.change_notices:unread",
    source="KIP-21",
    kind="mutation",
    symptom="stuck",
    schedule="A broker is paused while the settings of two topics change, for less than its "
    "session.",
)
def unread(names: Sequence[str], known: Collection[str]) -> list[str]:
    """Of several notifications that arrive together, a broker reads only the newest one.

    ZooKeeper reports by one event that notifications were added, however many they are. A broker
    that was slow then never learns of the changes before the last one: it deletes or compacts what
    the topic's settings keep, until it starts again.
    """
    return [name for name in names if name not in known][-1:]


@mutant(
    "settings-written-blindly",
    of="broker_impl.node.config_changes:alter",
    source="KIP-339",
    kind="mutation",
    symptom="invariant:settings-kept",
    schedule="Two settings of a topic are changed at the same time.",
)
async def alter(zk: ZooKeeper, entity: str, change: Alter, now_ms: int) -> None:
    """A broker writes the settings of a topic without comparing the version that it has read.

    Of two changes that are made at the same time, through one broker or two, both are acknowledged
    and one is lost, although they concern different settings: each writes the settings that it has
    read, with its own change.
    """
    path = zk_paths.config(entity)
    notice = zk_paths.encode(zk_paths.ConfigChangeZnode(entity_path=entity))
    announcement = Create(zk_paths.CONFIG_CHANGE_PREFIX, notice, sequential=True)
    before = await config_changes.read(zk, entity)
    after = zk_paths.encode(zk_paths.ConfigZnode(config=change(before)))
    write = SetData(path, after) if before else Create(path, after)
    if not await change_notices.announce(zk, write, announcement):
        await change_notices.announce(zk, SetData(path, after), announcement)


@mutant(
    "settings-of-former-topic",
    of="broker_impl.node.topic_settings:outlives",
    source="KIP-21",
    kind="mutation",
    symptom="invariant:settings-of-topic",
    schedule="The settings of a topic change, it is deleted, and created again on other brokers.",
)
def outlives(*, is_kept: bool, is_hosted: bool) -> bool:
    """A broker uses the settings of a deleted topic for the next topic of its name.

    Every broker keeps the settings of a topic when it is notified of a change, and only those with
    a replica are notified of its deletion. Another one that gets a replica of the next topic does
    not read that topic's settings: its log keeps records for as long as the former topic did.
    """
    return is_kept
