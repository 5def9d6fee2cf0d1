"""Types of options are described in the words of a refusal."""

from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import Meta, inspect

from nemesis import options
from nemesis.options import Key, Once, Options, Seconds, Share, SomeSeconds


@pytest.mark.parametrize(
    ("type_", "words"),
    [
        (bool, "true or false"),
        (str, "text"),
        (Literal["a", "b"], "a or b"),
        (Literal["a"] | bool, "a or true or false"),
        (Share, "a number above 0, 1 at most"),
        (Seconds | None, "a number of seconds from 0 to 3,600"),
        (SomeSeconds, "a number of seconds above 0, 3,600 at most"),
        (Annotated[int, Meta(ge=1)], "a whole number from 1"),
        (list[Key], "a list, each a partition (TOPIC-PARTITION)"),
        (Annotated[list[str], Meta(min_length=1)], "a list of one or more, each text"),
    ],
)
def test_a_type_in_words(type_: Any, words: str) -> None:
    """Choices, units and bounds are part of the description."""
    assert options.described(inspect.type_info(type_)) == words


class Two(Options, frozen=True, kw_only=True, rename={"parties": "from"}):
    share: Share
    parties: list[str] = msgspec.field(default_factory=list)


def test_a_table_is_read_by_the_names_in_plans() -> None:
    """A keyword of Python is an option's name in plans, and a whole number is a number."""
    assert options.read(Two, {"share": 1, "from": ["x"], "when": "txn"}) == Two(
        share=1.0, parties=["x"], when="txn"
    )
    with pytest.raises(
        ValueError, match="no option is called parties; there is from, once, share, when"
    ):
        options.read(Two, {"share": 1, "parties": ["x"]})


def test_a_long_value_is_cut_off() -> None:
    """A refusal repeats only the beginning of a long value or name."""
    for table in ({"share": "9" * 500}, {"x" * 500: 1}):
        why = options.refusal(Two, table)
        assert why is not None
        assert len(why) < 200


def test_a_state_in_words() -> None:
    """A state knows the brokers that it names, and a refused table is described by its fields."""
    once = Once(key="x-0", leader="broker-2", in_sync=["broker-3"], out_of_sync=["broker-1"])
    assert once.brokers == ("broker-2", "broker-3", "broker-1")
    why = options.refusal(Two, {"share": 1, "once": {"leader": "broker-2"}})
    assert why is not None
    assert (
        "must be a table of key, a partition (TOPIC-PARTITION); leader, the id of a broker" in why
    )
