"""Suggests, in a few words, what a user probably meant by an unknown name."""

import difflib
from collections.abc import Iterable

from model.text import brief

LISTED_MAX = 24
"""The number of names that a message lists; of more, it shows only those that are similar."""
CLOSE = 0.6
"""How similar two names must be, from 0 to 1."""


def close_to(name: str, known: Iterable[str]) -> list[str]:
    """Return the known names that resemble this one, the most similar first; at most three."""
    plain = {_plain(each): each for each in known}
    wanted = _plain(name)
    found = difflib.get_close_matches(wanted, plain, n=3, cutoff=CLOSE)
    if not found and len(wanted) > 2:
        found = [each for each in plain if wanted in each or each in wanted][:3]
    return [plain[each] for each in found]


def unknown(name: str, known: Iterable[str], all_of: str = "") -> str:
    """Return ``there is no kil; did you mean kill?``; see :func:`hint`."""
    return f"there is no {brief(name)}; {hint(name, known, all_of)}"


def hint(name: str, known: Iterable[str], all_of: str = "") -> str:
    """Return the similar names, else all known names, else their number.

    If there are too many names for a line, ``all_of`` says how to list them.
    """
    known = list(known)
    if close := close_to(name[:200], known):
        return f"did you mean {' or '.join(close)}?"
    if len(known) > LISTED_MAX:
        return f"{all_of} lists all {len(known)}" if all_of else f"{len(known)} names are available"
    return f"available: {', '.join(known) or 'none'}"


def _plain(name: str) -> str:
    return name.lower().replace("_", "-")
