"""Versions of products: numbers with dots, of which a product's oldest one is the limit."""

import re

Version = tuple[int, ...]

_NUMBER = r"(0|[1-9][0-9]*)"


def parse(text: str, oldest: Version, example: str, *, numbers_max: int) -> Version:
    """Return a version of two to ``numbers_max`` numbers; raises ``ValueError``.

    ``example`` is a version that the error names.
    """
    if re.fullmatch(rf"{_NUMBER}(\.{_NUMBER}){{1,{numbers_max - 1}}}", text) is None:
        raise ValueError(f"{text} is not a version such as {example}")
    found = tuple(map(int, text.split(".")))
    if found < oldest:
        raise ValueError(f"the oldest release that can be tested is {shown(oldest)}")
    return found


def shown(version: Version) -> str:
    """Return the text of a version: the inverse of :func:`parse`."""
    return ".".join(map(str, version))
