"""Deterministic simulation: asyncio programs on virtual time, one loop per simulated process."""
