"""Names that do not exist: what the user probably meant, in a few words."""

import difflib
from collections.abc import Iterable

from model.text import brief

LISTED_MAX = 24
"""So many names are listed in a message; of more, only those that are close."""
CLOSE = 0.6
"""How much two names must have in common, from 0 to 1."""


def close_to(name: str, known: Iterable[str]) -> list[str]:
    """The known names that look like this one, the most similar first; three at most."""
    plain = {_plain(each): each for each in known}
    wanted = _plain(name)
    found = difflib.get_close_matches(wanted, plain, n=3, cutoff=CLOSE)
    if not found and len(wanted) > 2:
        found = [each for each in plain if wanted in each or each in wanted][:3]
    return [plain[each] for each in found]


def unknown(name: str, known: Iterable[str], all_of: str = "") -> str:
    """``no kil; did you mean kill?``; see :func:`hint`."""
    return f"no {brief(name)}; {hint(name, known, all_of)}"


def hint(name: str, known: Iterable[str], all_of: str = "") -> str:
    """The names that are similar; without any all that there are, or, where these are too many for
    a line, their number and ``all_of``: how to see them."""
    known = list(known)
    if close := close_to(name[:200], known):
        return f"did you mean {' or '.join(close)}?"
    if len(known) > LISTED_MAX:
        return f"there are {len(known)}{all_of and f': {all_of}'}"
    return f"there is {', '.join(known) or 'nothing'}"


def _plain(name: str) -> str:
    return name.lower().replace("_", "-")
