"""Shortens text from outside before it is repeated in a message."""

BRIEF_MAX = 100


def brief(text: object) -> str:
    """Return a value as text, cut off after its first hundred characters."""
    shown = str(text)
    return shown if len(shown) <= BRIEF_MAX else f"{shown[:BRIEF_MAX]}…"
