"""``settings-kept``: a change of a topic's settings that was acknowledged is not lost.

An IncrementalAlterConfigs changes the settings that it names, and no others (KIP-339). So what was
acknowledged is in ZooKeeper until another request names the same setting, replaces all settings of
the topic (AlterConfigs), or deletes the topic. A request that was never answered may be carried out
at any time: what it names is not judged any more.
"""

from collections.abc import Iterator, Mapping
from itertools import count
from typing import Final, NamedTuple

LATER: Final = 2
"""A change is in the so many-th state that is seen after it was acknowledged."""


class Asked(NamedTuple):
    """A request to change settings of a topic."""

    topic: str
    changes: Mapping[str, str | None] | None
    """The value of each setting that it names, ``None`` for one that it removes; ``None``: it
    replaces all settings."""

    def concerns(self, other: "Asked") -> bool:
        """Return whether both requests name a setting."""
        if self.topic != other.topic or self.changes is None or other.changes is None:
            return self.topic == other.topic
        return not self.changes.keys().isdisjoint(other.changes)


class KeptSettings:
    """What all brokers have acknowledged of the settings of topics."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], tuple[str | None, int]] = {}
        """The acknowledged value, and the number of the state of ZooKeeper that must have it, by
        topic and name."""
        self._seen: Mapping[str, Mapping[str, str]] = {}
        self._states = 0
        self._numbers = count()
        self._open: dict[int, Asked] = {}
        """The requests that were not answered yet."""
        self._alone: set[int] = set()
        """Those of them that no other request concerns which was open at the same time."""
        self._ended: set[str] = set()
        """Topics that a request has deleted; later ones of the name are not judged."""

    def asks(self, asked: Asked) -> int:
        """Note a request, and return its number."""
        number = next(self._numbers)
        others = [each for each, known in self._open.items() if asked.concerns(known)]
        self._alone.difference_update(others)
        if not others:
            self._alone.add(number)
        self._open[number] = asked
        for topic, name in list(self._known):
            if asked.concerns(Asked(topic, {name: None})):
                del self._known[topic, name]
        return number

    def answered(self, number: int, *, is_done: bool) -> None:
        """Note the answer to a request; ``is_done``: it was accepted."""
        topic, changes = self._open.pop(number)
        if is_done and number in self._alone:
            for name, value in (changes or {}).items():
                self._known[topic, name] = value, self._states + LATER
        self._alone.discard(number)

    def deletes(self, topic: str | None) -> None:
        """Note that a request asks to delete a topic; None: it does so by a topic id."""
        if topic is None:
            self._known.clear()
        else:
            self._ended.add(topic)

    def lost(self, settings: Mapping[str, Mapping[str, str]]) -> Iterator[tuple[str, str]]:
        """Yield each topic with a change that ZooKeeper does not have, and which; each once.

        ``settings`` is another object once something has changed in ZooKeeper. A change is judged
        in a later state than the one that was known when it was acknowledged: ZooKeeper may have
        ended in between, and the server that knows most may not know yet what is committed.
        """
        if settings is not self._seen:
            self._seen, self._states = settings, self._states + 1
        for (topic, name), (value, known) in list(self._known.items()):
            found = settings.get(topic, {}).get(name)
            if topic not in self._ended and found != value and self._states >= known:
                del self._known[topic, name]
                yield topic, f"{name} was set to {value}, and is {found}"
