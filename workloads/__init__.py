"""Asks questions whose answers can be judged."""
