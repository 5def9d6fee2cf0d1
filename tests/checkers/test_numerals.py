"""Numbers in a text are found and parsed."""

import re

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from checkers.numerals import DIGITS_MAX, Numerals

LINES = st.text('0123456789ab",:[]-\n', max_size=60).map(str.encode)


@given(LINES)
def test_all_numbers_are_found(lines: bytes) -> None:
    """Every sequence of digits is a number of its line."""
    numerals = Numerals(lines)
    texts = re.findall(rb"[0-9]+", lines)
    everything = np.arange(lines.count(b"\n") + 1)
    which = numerals.of_lines(everything)
    is_whole = all(len(t) <= DIGITS_MAX and (t == b"0" or t[:1] != b"0") for t in texts)
    assert numerals.are_whole(which) == is_whole
    if is_whole:
        assert numerals.values(which).tolist() == [int(text) for text in texts]
    for at, line in enumerate(lines.split(b"\n")):
        assert numerals.lines(at, at + 1) == line
        found = numerals.values(numerals.of_lines(np.array([at])))
        assert len(found) == len(re.findall(rb"[0-9]+", line))


@given(st.integers(0, 10**DIGITS_MAX - 1), st.binary(max_size=9))
def test_numbers_of_all_lengths_are_parsed(number: int, before: bytes) -> None:
    """A number is parsed to its last digit, whatever stands before it."""
    line = re.sub(rb"[0-9\n]", b"x", before) + b"%d" % number
    numerals = Numerals(line)
    assert numerals.values(numerals.of_lines(np.array([0]))).tolist() == [number]


def test_all_records_but_the_last_are_left_out() -> None:
    """Each number is 0, and each list of records has one."""
    line = b'{"x-12":[[34,5],[36,7],[38,9]],"x-1":[[2,3]]},[[4,5],[6,7]],["send","x",[8,9]]'
    numerals = Numerals(line)
    assert numerals.abridged() == (
        b'{"x-0":[[0,0]],"x-0":[[0,0]]},[[0,0],[0,0]],["send","x",[0,0]]'
    )
    which = numerals.of_lines(np.array([0]))
    assert numerals.values(which)[numerals.is_repeated].tolist() == [34, 5, 36, 7]


def test_lines_have_their_own_numbers() -> None:
    """The numbers of lines that are not next to each other are found."""
    numerals = Numerals(b"1 2\n3\n\n4 5")
    assert numerals.values(numerals.of_lines(np.array([0, 3]))).tolist() == [1, 2, 4, 5]
    assert numerals.values(numerals.of_lines(np.array([1, 2]))).tolist() == [3]
