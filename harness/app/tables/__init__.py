"""Typed tables of histories: what checkers judge, as Parquet files that users can query."""
