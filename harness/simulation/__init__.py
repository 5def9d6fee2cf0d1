"""Deterministic simulation: asyncio programs on virtual time, one event loop per process."""
