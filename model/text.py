"""Text of others in messages of ours."""

BRIEF_MAX = 100


def brief(text: object) -> str:
    """A value as a message repeats it: of a long one its first hundred characters."""
    shown = str(text)
    return shown if len(shown) <= BRIEF_MAX else f"{shown[:BRIEF_MAX]}…"
