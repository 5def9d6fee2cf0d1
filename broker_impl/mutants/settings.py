"""Bugs in how brokers keep the settings of topics that are stored in ZooKeeper."""

from collections.abc import Collection, Sequence

from broker_impl.mutants import mutant


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
