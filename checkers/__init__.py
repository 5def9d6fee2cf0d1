"""Judges recorded histories, never the run."""
