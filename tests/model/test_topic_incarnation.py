"""The names of a topic's incarnations."""

from model import topic_incarnation


def test_each_life_has_a_name_of_its_own() -> None:
    """Each incarnation of a topic has a name of its own, and the first has the topic's name."""
    names = ["topic0"]
    for _ in range(10):
        names.append(topic_incarnation.next_of(names[-1]))
    assert names[:3] == ["topic0", "topic0~1", "topic0~2"]
    assert [topic_incarnation.number_of(name) for name in names] == list(range(11))
    assert {topic_incarnation.topic_of(name) for name in names} == {"topic0"}
