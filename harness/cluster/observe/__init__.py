"""Observes a cluster: its metadata, readiness, signs of life, and snapshots of its state."""
