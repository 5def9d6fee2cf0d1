"""A topic that is deleted and made anew under its name has another life, and each life has a name
of its own in histories: ``topic0``, then ``topic0~1``, ``topic0~2`` …

Brokers are told the same name each time; no topic of theirs can have a ``~`` in it.
"""

_MARK = "~"


def topic_of(life: str) -> str:
    """The name that brokers are told."""
    return life.partition(_MARK)[0]


def number_of(life: str) -> int:
    """How many lives of the topic came before."""
    return int(life.partition(_MARK)[2] or 0)


def next_of(life: str) -> str:
    """The life behind this one."""
    return f"{topic_of(life)}{_MARK}{number_of(life) + 1}"
