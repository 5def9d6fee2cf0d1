"""Finds and parses the numbers in a text, all at once."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from checkers.columns import spread
from checkers.kernels.rows import I64, Bools

DIGITS_MAX = 18
"""Number of digits that always fit into 64 bits."""

_WORD = 8
_BEFORE, _AFTER = b" " * 3 * _WORD, b" " * _WORD
_LAST_DIGITS = np.array(
    [0x0F0F0F0F0F0F0F0F >> 8 * (_WORD - n) << 8 * (_WORD - n) for n in range(_WORD + 1)],
    dtype=np.uint64,
)
"""Masks of the values of the last digits in a word, by their number."""
_ZERO, _NINE, _NEWLINE = b"09\n"
_OPEN, _COMMA, _CLOSE = b"[,]"
_LIST_BEGIN = int.from_bytes(b'":[[', "little")
_ZEROS = bytes.maketrans(b"123456789", b"000000000")


class Numerals:
    """The sequences of digits in a text of lines."""

    def __init__(self, lines: bytes) -> None:
        self._text = _BEFORE + lines + _AFTER
        self._bytes = np.frombuffer(self._text, dtype=np.uint8)
        self._is_digit = self._bytes - np.uint8(_ZERO) <= np.uint8(_NINE - _ZERO)
        edges = np.flatnonzero(self._is_digit[1:] != self._is_digit[:-1]) + 1
        self._begins, self._ends = edges[::2].copy(), edges[1::2].copy()
        self._lengths = self._ends - self._begins
        newlines = np.flatnonzero(self._bytes == np.uint8(_NEWLINE))
        self._line_begins = np.concatenate(([len(_BEFORE)], newlines + 1))
        self._line_ends = np.append(newlines, len(self._text) - len(_AFTER))
        self._first = np.append(np.searchsorted(self._begins, self._line_begins), len(self._begins))
        self.is_repeated = np.zeros(len(self._begins), dtype=np.bool_)
        """Which numbers are in a polled record that another one of its list follows."""
        self._repeated = self._records()
        self.is_repeated[self._repeated] = self.is_repeated[self._repeated + 1] = True

    def _records(self) -> I64:
        """Return the offsets of the records ``[1,2]`` in a list that are not the last."""
        begins, ends, text = self._begins, self._ends, self._bytes
        gap = begins[1:] - ends[:-1]
        first = np.flatnonzero((gap[:-1] == len(",")) & (gap[1:] == len("],[")))
        end = ends[first + 1]
        first = first[
            (text[begins[first] - 1] == np.uint8(_OPEN))
            & (text[ends[first]] == np.uint8(_COMMA))
            & (text[end] == np.uint8(_CLOSE))
            & (text[end + 1] == np.uint8(_COMMA))
            & (text[end + 2] == np.uint8(_OPEN))
        ]
        # each list begins with the end of its key, or with a record that was found
        is_first = np.append(True, first[1:] != first[:-1] + 2)[: len(first)]
        begin = begins[first] - len('":[[')
        before = self._quadruples(begin)
        is_list = before == _LIST_BEGIN
        chain = np.cumsum(is_first) - 1
        found: I64 = first[is_list[is_first][chain]]
        return found

    def _quadruples(self, places: I64) -> NDArray[np.uint32]:
        """Return the four bytes from each of these places, as one number."""
        return self._view("<u4")[places]

    def _view(self, dtype: str) -> NDArray[Any]:
        """Return the numbers that begin at every byte of the text."""
        count = len(self._text) - np.dtype(dtype).itemsize + 1
        return np.ndarray((count,), dtype=dtype, buffer=self._text, strides=(1,))

    def abridged(self) -> bytes:
        """Return the text with only one digit of each number, which is 0, and with only the last
        record of each list."""
        kept = np.ones(len(self._bytes), dtype=np.bool_)
        np.logical_and(self._is_digit[1:], self._is_digit[:-1], out=kept[1:])
        np.logical_not(kept[1:], out=kept[1:])
        if not len(self._repeated):
            return self._kept(kept)
        bounds = np.zeros(2 * len(self._repeated) + 2, dtype=np.int64)
        bounds[1:-1:2] = self._begins[self._repeated]
        bounds[2:-1:2] = self._begins[self._repeated + 2]
        bounds[-1] = len(kept)
        kept &= np.repeat(np.arange(len(bounds) - 1) % 2 == 0, np.diff(bounds))
        return self._kept(kept)

    def _kept(self, kept: Bools) -> bytes:
        """Return some of the text, with 0 in place of each digit."""
        inner = slice(len(_BEFORE), len(self._text) - len(_AFTER))
        return self._bytes[inner][kept[inner]].tobytes().translate(_ZEROS)

    def lines(self, begin: int, end: int) -> bytes:
        """Return the text of these lines."""
        return self._text[self._line_begins[begin] : self._line_ends[end - 1]]

    def of_lines(self, lines: I64) -> I64 | slice:
        """Return which numbers are in these lines, whose numbers increase."""
        if lines[-1] - lines[0] == len(lines) - 1:
            return slice(self._first[lines[0]], self._first[lines[-1] + 1])
        return spread(self._first[lines], self._first[lines + 1])[0]

    def are_whole(self, numbers: I64 | slice) -> bool:
        """Return whether these numbers have no leading zeros and fit into 64 bits."""
        lengths = self._lengths[numbers]
        leading = self._bytes[self._begins[numbers]] == np.uint8(_ZERO)
        return bool(lengths.max(initial=0) <= DIGITS_MAX) and not (leading & (lengths > 1)).any()

    def values(self, numbers: I64 | slice) -> I64:
        """Return the values of numbers, of which each has at most ``DIGITS_MAX`` digits."""
        ends, lengths = self._ends[numbers], self._lengths[numbers]
        found = self._words(ends, np.minimum(lengths, _WORD))
        for word in (1, 2):
            longer = np.flatnonzero(lengths > word * _WORD)
            if len(longer):
                rest = np.minimum(lengths[longer] - word * _WORD, _WORD)
                more = self._words(ends[longer] - word * _WORD, rest)
                found[longer] += more * 10 ** (word * _WORD)
        return found

    def _words(self, ends: I64, lengths: I64) -> I64:
        """Parse up to eight digits before each end, in three steps for all digits of a word."""
        word = self._view("<u8")[ends - _WORD]
        word &= _LAST_DIGITS[lengths]
        word *= np.uint64(1 + (10 << 8))
        word >>= np.uint64(8)
        word &= np.uint64(0x00FF00FF00FF00FF)
        word *= np.uint64(1 + (100 << 16))
        word >>= np.uint64(16)
        word &= np.uint64(0x0000FFFF0000FFFF)
        word *= np.uint64(1 + (10_000 << 32))
        word >>= np.uint64(32)
        return word.view(np.int64)
