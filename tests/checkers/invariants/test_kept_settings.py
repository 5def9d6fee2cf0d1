from collections.abc import Mapping

import pytest

from checkers.invariants.kept_settings import LATER, Asked, KeptSettings

A, B = Asked("t", {"a": "1"}), Asked("t", {"b": "2"})
ALL = Asked("t", None)


@pytest.fixture
def kept() -> KeptSettings:
    return KeptSettings()


def done(kept: KeptSettings, *requests: Asked) -> None:
    """Acknowledge these requests, each before the next one."""
    for asked in requests:
        kept.answered(kept.asks(asked), is_done=True)


def lost(kept: KeptSettings, found: Mapping[str, str]) -> list[str]:
    """Return what is lost if ZooKeeper has these settings of the topic in its next states."""
    return [why for _ in range(LATER) for _, why in kept.lost({"t": dict(found)})]


def test_each_acknowledged_change_is_kept(kept: KeptSettings) -> None:
    """Also if another setting was changed at the same time; a loss is reported once."""
    numbers = kept.asks(A), kept.asks(B)
    for number in numbers:
        kept.answered(number, is_done=True)
    assert lost(kept, {"a": "1", "b": "2"}) == []
    assert lost(kept, {"b": "2"}) == ["a was set to 1, and is None"]
    assert lost(kept, {}) == ["b was set to 2, and is None"]
    done(kept, B)
    assert lost(kept, {"b": "3"}) == ["b was set to 2, and is 3"]


def test_a_later_request_may_change_it(kept: KeptSettings) -> None:
    """From its arrival on, whether it is answered or not."""
    done(kept, A)
    kept.asks(Asked("t", {"a": None}))
    assert lost(kept, {}) == []
    done(kept, A)
    assert lost(kept, {}) == [], "the request before may be carried out at any time"
    done(kept, B)
    assert lost(kept, {"b": "1"}) == ["b was set to 2, and is 1"]


def test_requests_for_the_same_setting_at_the_same_time(kept: KeptSettings) -> None:
    """The order in which they are carried out is not known."""
    first, second = kept.asks(A), kept.asks(Asked("t", {"a": "9"}))
    kept.answered(second, is_done=True)
    kept.answered(first, is_done=True)
    assert lost(kept, {"a": "9"}) == []


def test_all_settings_may_be_replaced(kept: KeptSettings) -> None:
    """That concerns each change before, and each at the same time."""
    done(kept, A)
    number = kept.asks(ALL)
    done(kept, B)
    kept.answered(number, is_done=True)
    assert lost(kept, {}) == []
    done(kept, Asked("t", {"a": None}))
    assert lost(kept, {"a": "1"}) == ["a was set to None, and is 1"]
    done(kept, A)
    kept.deletes(None)
    assert lost(kept, {}) == []


def test_refused_changes_and_deleted_topics_are_not_judged(kept: KeptSettings) -> None:
    """A topic of the same name has other settings."""
    kept.answered(kept.asks(A), is_done=False)
    assert lost(kept, {}) == []
    done(kept, A)
    kept.deletes("t")
    assert lost(kept, {}) == []


def test_a_state_of_before_the_answer_shows_nothing(kept: KeptSettings) -> None:
    """ZooKeeper may have ended after it; nor does the first state after that."""
    before: dict[str, dict[str, str]] = {"t": {}}
    assert not list(kept.lost(before))
    done(kept, A)
    assert not list(kept.lost(before))
    assert not list(kept.lost({"t": {}}))
    assert len(list(kept.lost({"t": {}}))) == 1
