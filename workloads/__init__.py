"""Generates operations whose outcomes can be judged."""
