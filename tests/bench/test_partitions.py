import pytest

from bench import partitions
from bench.partitions import idle_of, p50_of, transactions_of, with_partitions
from bench.table import Series

FEW, MANY = with_partitions(partitions.FEW), with_partitions(partitions.MANY)


def series(
    p50: tuple[float, ...], transactions: tuple[float, ...], idle: tuple[float, ...]
) -> list[Series]:
    """Figures of a cluster with many partitions, where those with few are 1 ms and 100 a second."""
    ones = (1.0,) * len(p50)
    return [
        Series(p50_of(FEW), "ms", ones),
        Series(p50_of(MANY), "ms", p50),
        Series(transactions_of(FEW), "transactions/s", tuple(100 * each for each in ones)),
        Series(transactions_of(MANY), "transactions/s", transactions),
        Series(idle_of(MANY), "% of a core", idle),
    ]


@pytest.mark.parametrize(
    ("p50", "transactions", "idle", "met"),
    [
        ((1.5, 1.5, 9.0), (80.0, 80.0, 10.0), (5.0, 5.0, 50.0), [True, True, True]),
        ((1.6, 1.5, 1.6), (80.0,) * 3, (5.0,) * 3, [False, True, True]),
        ((1.5,) * 3, (79.0, 79.0, 90.0), (5.0,) * 3, [True, False, True]),
        ((1.5,) * 3, (80.0,) * 3, (5.1, 5.1, 1.0), [True, True, False]),
    ],
)
def test_bars(
    p50: tuple[float, ...],
    transactions: tuple[float, ...],
    idle: tuple[float, ...],
    met: list[bool],
) -> None:
    """Each promise is kept up to its limit, by the median of the rounds."""
    found = partitions.bars(series(p50, transactions, idle))
    assert [bar.is_met for bar in found] == met
