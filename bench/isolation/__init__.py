"""Measures how fast transactions on lists are judged, inline and on Spark."""
