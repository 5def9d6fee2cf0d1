"""The rates by which clients are throttled."""

import pytest

from broker_impl.api.quotas.rate import Rate, throttle_ms


def test_a_rate_begins_as_if_all_windows_but_one_were_over() -> None:
    """The first values count over ten of eleven windows, so that a short burst is permitted."""
    rate = Rate(11, 1000)
    assert rate.measure(5000) == (0.0, 10_000)
    rate.record(100, 5000)
    assert rate.measure(5000) == (10.0, 10_000)
    rate.record(50, 5999)
    assert rate.measure(5999) == pytest.approx((150 / 10.999, 10_999))
    assert rate.measure(6000) == (15.0, 10_000)


def test_old_windows_do_not_count() -> None:
    """A window counts until eleven windows have passed since it began."""
    rate = Rate(11, 1000)
    rate.record(100, 0)
    rate.record(30, 1000)
    assert rate.measure(10_999) == pytest.approx((130 / 10.999, 10_999))
    assert rate.measure(11_000) == (3.0, 10_000)
    assert rate.measure(12_000) == (0.0, 10_000)


def test_windows_begin_with_values() -> None:
    """A value within a window's length of its begin belongs to it; the next one begins another."""
    rate = Rate(3, 100)
    for now, value in ((0, 1), (99, 1), (150, 1), (249, 1), (250, 1)):
        rate.record(value, now)
    assert rate.last_recorded_ms() == 250
    assert rate.measure(250) == (20.0, 250)


def test_one_window() -> None:
    """With a single window, a rate cannot be measured at its begin, and is zero."""
    rate = Rate(1, 100)
    rate.record(5, 0)
    assert rate.measure(0) == (0.0, 0.0)
    assert rate.measure(50) == (100.0, 50)


@pytest.mark.parametrize(
    ("rate", "bound", "elapsed", "delay"),
    [(10, 10, 1000, 0), (9, 10, 1000, 0), (20, 10, 1000, 1000), (11, 10, 10_000, 1000)],
)
def test_throttle_times(rate: float, bound: float, elapsed: float, delay: int) -> None:
    """A rate above its bound by a tenth is down to it after a tenth of the measured time."""
    assert throttle_ms(rate, bound, elapsed) == delay
