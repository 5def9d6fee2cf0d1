"""Transactional isolation: anomalies of transactions, found by the method of Jepsen's Elle.

:func:`judge` takes the events of a history and says which consistency models it violates, with
witnesses and an argument for each anomaly.
"""

from checkers.isolation.findings import Found, Result, Step
from checkers.isolation.judging import judge
from checkers.isolation.options import Options

__all__ = ["Found", "Options", "Result", "Step", "judge"]
