"""Names partitions in a history, and finds the ones that an operation has created."""

from model.op import Op


def partitions_of(topic: str, partitions: int) -> tuple[str, ...]:
    """Return the partitions of a topic with this number of partitions."""
    return tuple(f"{topic}-{partition}" for partition in range(partitions))


def created(event: Op) -> tuple[str, ...]:
    """Return the partitions that this event creates: those of a topic that was created."""
    if event.f != "create-topic" or event.type != "ok":
        return ()
    return tuple(key for _, topic, count in event.value for key in partitions_of(topic, count))
