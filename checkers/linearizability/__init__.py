"""Linearizability: each operation must seem to take effect at one moment while it lasted.

:mod:`~checkers.linearizability.models` says what operations do, and
:mod:`~checkers.linearizability.judging` decides whether an order exists that explains a history.
"""
