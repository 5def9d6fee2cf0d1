"""Measures how fast large histories of objects are judged from Parquet files."""
