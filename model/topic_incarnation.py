"""Names for the incarnations of a topic that is deleted and created again under the same name.

Each incarnation has its own name in histories: ``topic0``, then ``topic0~1``, ``topic0~2`` and so
on. Brokers see the same name each time. None of their topics can have a ``~`` in its name.
"""

_MARK = "~"


def topic_of(life: str) -> str:
    """Return the topic's name on the brokers."""
    return life.partition(_MARK)[0]


def number_of(life: str) -> int:
    """Return how many incarnations of the topic came before this one."""
    return int(life.partition(_MARK)[2] or 0)


def next_of(life: str) -> str:
    """Return the name of the next incarnation."""
    return f"{topic_of(life)}{_MARK}{number_of(life) + 1}"
