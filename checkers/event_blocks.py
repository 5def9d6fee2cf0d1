"""Adds the events of many lines at once, by the templates of their lines.

The result is the same as that of :meth:`checkers.events.EventColumns.add`, which interprets one
event after another. A line without a template is left to that method, and so is every line that may
have to be rejected.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from checkers import line_templates
from checkers.columns import spread
from checkers.event_batches import Batch, merged
from checkers.events import EventColumns
from checkers.kernels.rows import I64, UNKNOWN, Bools
from checkers.line_templates import NONE, Key, Template
from checkers.micro_ops import SEND
from checkers.numerals import Numerals

_PAUSE_MAX = 64
"""Number of blocks at most that are left to the other method after one where most lines had to
be."""
_SEEN_MIN = 16
"""Number of lines that differ only in their numbers from which on it pays to make a template."""
_SEEN_MAX = 4096
"""Number of lines without numbers that are counted."""
_TEMPLATES_MAX = 1024
_PROCESS_MAX = (1 << 31) - 1
_KEY_BITS = 20
"""Size of each of the two numbers in the name of a partition."""
_SMALL_BITS = 7
"""Size of the numbers in a name up to which its code is found in an array."""
_SMALL_TEXTS = 64


class _Flat(NamedTuple):
    """All templates as arrays."""

    numbers: I64
    heads: I64
    """The places of the index, of the time and of the process."""
    type: I64
    ops_begin: I64
    """The rows of ``ops`` of each template begin here, and end where the next one's begin."""
    op_counts: I64
    ops: I64
    """Rows of is_send, key, its two numbers, offset, value."""
    lists_begin: I64
    lists: I64
    """Rows of micro-operation, key, its two numbers, offset."""


class _Coded(NamedTuple):
    """The codes of the names in all templates."""

    f: I64
    error: I64
    op: I64


AddLines = Callable[[EventColumns, bytes], None]
"""Adds lines, one event after another."""


class _LeftError(Exception):
    """Lines have to be added one event after another, because one may have to be rejected."""


class _NewNameError(Exception):
    """Lines have a name that no earlier line had."""


class EventBlocks:
    """Adds blocks of lines to columns."""

    def __init__(self, columns: EventColumns, add_lines: AddLines) -> None:
        self._columns, self._add_lines = columns, add_lines
        self._templates: list[Template] = []
        self._number: dict[bytes, int] = {}
        """The number of the template of a line whose numbers are 0, or ``NONE``."""
        self._seen: Counter[bytes] = Counter()
        """How often lines without a template were seen."""
        self._flat: _Flat | None = None
        self._is_named = np.zeros(_TEMPLATES_MAX, dtype=np.bool_)
        """Whether the names in each template have codes."""
        self._coded = _Coded(*(np.zeros(0, dtype=np.int64) for _ in _Coded._fields))
        self._texts: dict[tuple[str, ...], int] = {}
        self._keys: dict[int, int] = {}
        """The code of a partition by the numbers of its texts and in them."""
        self._small = np.full(_SMALL_TEXTS << 2 * _SMALL_BITS, NONE, dtype=np.int32)
        self._pause = self._left = 0

    def add(self, lines: bytes) -> None:
        """Add lines. Raises what ``add_lines`` raises, midway."""
        if self._left:
            self._left -= 1
            self._add_lines(self._columns, lines)
            return
        numerals = Numerals(lines)
        bare = numerals.abridged().split(b"\n")
        template = self._numbers(bare)
        is_plain = template >= 0
        if 2 * np.count_nonzero(is_plain) < len(bare):
            self._leave(lines)
            return
        self._pause = 0
        if is_plain.all():
            self._add_run(numerals, (0, len(bare)), template)
            return
        try:
            plain = self._plain(numerals, np.flatnonzero(is_plain), template, may_name=False)
        except _LeftError:
            self._leave(lines)
        except _NewNameError:
            # names have codes in the order of their first appearance
            for begin, end in _runs(is_plain):
                if is_plain[begin]:
                    self._add_run(numerals, (begin, end), template)
                else:
                    self._add_lines(self._columns, numerals.lines(begin, end))
        else:
            others = self._columns.sibling()
            runs = [run for run in _runs(is_plain) if not is_plain[run[0]]]
            self._add_lines(others, b"\n".join([numerals.lines(*run) for run in runs]))
            merged(plain, Batch.of(others), is_plain).append_to(self._columns)

    def _leave(self, lines: bytes) -> None:
        """Add lines one event after another, and some of the next blocks, too: a history of such
        lines is not searched for templates all the time."""
        self._pause = self._left = min(2 * self._pause + 1, _PAUSE_MAX)
        self._add_lines(self._columns, lines)

    def _add_run(self, numerals: Numerals, run: tuple[int, int], template: I64) -> None:
        """Add consecutive lines, which all have templates."""
        try:
            batch = self._plain(numerals, np.arange(*run), template, may_name=True)
        except _LeftError:
            self._leave(numerals.lines(*run))
        else:
            batch.append_to(self._columns)

    def _numbers(self, bare: list[bytes]) -> I64:
        """Return the number of each line's template."""
        number = self._number
        try:
            return np.array(list(map(number.__getitem__, bare)))
        except KeyError:
            pass
        seen = self._seen
        seen.update([line for line in bare if line not in number])
        for line in [line for line, times in seen.items() if times >= _SEEN_MIN]:
            del seen[line]
            if len(number) < _TEMPLATES_MAX:
                number[line] = self._add_template(line_templates.template(line))
        if len(seen) > _SEEN_MAX:
            seen.clear()
        return np.array([number.get(line, NONE) for line in bare])

    def _add_template(self, template: Template | None) -> int:
        if template is None:
            return NONE
        self._templates.append(template)
        self._flat = None
        return len(self._templates) - 1

    def _plain(self, numerals: Numerals, lines: I64, template: I64, *, may_name: bool) -> Batch:
        """Return lines, by the templates of all lines. Raises :class:`_LeftError`, and
        :class:`_NewNameError` if names must not be new."""
        flat, template = self._flattened(), template[lines]
        if not self._is_named[template].all():
            self._add_names(template, may_name=may_name)
        which = numerals.of_lines(lines)
        if not numerals.are_whole(which):
            raise _LeftError
        numbers, repeated = numerals.values(which), numerals.is_repeated[which]
        at = np.flatnonzero(~repeated)
        plain = numbers[at]
        count = flat.numbers[template]
        if len(at) != count.sum():
            raise _LeftError
        first = np.cumsum(count) - count
        index, time_ns, process = (plain[first + place[template]] for place in flat.heads)
        if process.max() > _PROCESS_MAX:
            raise _LeftError

        ops, line = spread(flat.ops_begin[template], flat.ops_begin[template + 1])
        is_send, text, one, two, offset, value = flat.ops.take(ops, axis=1)
        base = first[line]
        sends = np.flatnonzero(is_send)
        of_sends = _packed(plain, base[sends], text[sends], one[sends], two[sends])
        lists, line = spread(flat.lists_begin[template], flat.lists_begin[template + 1])
        op, text, one, two, last = flat.lists.take(lists, axis=1)
        of_lists = _packed(plain, first[line], text, one, two)
        op_counts = flat.op_counts[template]
        op += (np.cumsum(op_counts) - op_counts)[line]
        in_order = (np.concatenate((of_sends, of_lists)), np.concatenate((sends, op)))
        codes = self._codes(*in_order, may_name=may_name)
        list_codes = codes[len(sends) :]
        if _is_doubled(op, list_codes, len(self._columns.keys)):
            raise _LeftError

        last_at = at[first[line] + last]
        is_record = np.zeros(len(numbers), dtype=np.bool_)
        is_record[last_at] = True
        is_record[np.flatnonzero(repeated)[::2]] = True
        records = np.flatnonzero(is_record)
        lengths = np.diff(np.cumsum(is_record)[last_at], prepend=0)
        op_key = np.full(len(ops), NONE, dtype=np.int64)
        op_key[sends] = codes[: len(sends)]
        return Batch(
            events={
                "index": index,
                "time_ns": time_ns,
                "process": process,
                "type": flat.type[template],
                "f": self._coded.f[template],
                "error": self._coded.error[template],
            },
            op_counts=op_counts,
            ops={
                "op": self._coded.op[ops],
                "op_key": op_key,
                "op_offset": np.where(offset == NONE, UNKNOWN, plain[base + offset]),
                "op_value": np.where(value == NONE, 0, plain[base + value]),
            },
            has_value=is_send.astype(np.bool_),
            group=None,
            record_counts=np.bincount(op, lengths, len(ops)).astype(np.int64),
            records={
                "record_key": np.repeat(list_codes, lengths),
                "record_offset": numbers[records],
                "record_value": numbers[records + 1],
            },
            details={},
        )

    def _codes(self, packed: I64, op: I64, *, may_name: bool) -> I64:
        """Return the codes of partitions, each of which is in a micro-operation."""
        small = _small(packed)
        if small is not None and len(codes := self._small[small]) and codes.min() >= 0:
            return codes.astype(np.int64)
        # new names have codes in the order of their first appearance
        for key in dict.fromkeys(packed[np.argsort(op, kind="stable")].tolist()):
            if key not in self._keys:
                if not may_name and self._name(key) not in self._columns.keys:
                    raise _NewNameError
                self._keys[key] = self._columns.keys[self._name(key)]
        found = np.array([self._keys[key] for key in packed.tolist()], dtype=np.int64)
        if small is not None:
            self._small[small] = found
        return found

    def _name(self, packed: int) -> str:
        numbers = (packed >> _KEY_BITS & _KEY_MAX, packed & _KEY_MAX)
        texts = self._texts_of(packed >> 2 * _KEY_BITS)
        return texts[0] + "".join(f"{n}{text}" for n, text in zip(numbers, texts[1:], strict=False))

    def _texts_of(self, number: int) -> tuple[str, ...]:
        return list(self._texts)[number]

    def _flattened(self) -> _Flat:
        """Return all templates as arrays."""
        if self._flat is None:
            known = self._templates
            ops = [
                (op.kind == SEND, *self._key(op.key), op.offset, op.value)
                for one in known
                for op in one.micro_ops
            ]
            lists = [
                (records.micro_op, *self._key(records.key), records.offset)
                for one in known
                for records in one.records
            ]
            self._flat = _Flat(
                numbers=np.array([one.numbers for one in known]),
                heads=np.array([one.heads for one in known]).T.copy(),
                type=np.array([one.type for one in known]),
                ops_begin=_begins([len(one.micro_ops) for one in known]),
                op_counts=np.array([len(one.micro_ops) for one in known]),
                ops=np.array(ops, dtype=np.int64).reshape(-1, 6).T.copy(),
                lists_begin=_begins([len(one.records) for one in known]),
                lists=np.array(lists, dtype=np.int64).reshape(-1, 5).T.copy(),
            )
            self._coded = self._codes_of_names()
        return self._flat

    def _key(self, key: Key | None) -> tuple[int, int, int]:
        if key is None:
            return (NONE, NONE, NONE)
        return (self._texts.setdefault(key.texts, len(self._texts)), *key.places)

    def _add_names(self, template: I64, *, may_name: bool) -> None:
        """Give codes to the names in templates, in the order of their first appearance. Raises
        :class:`_NewNameError` if names must not be new."""
        columns = self._columns
        for number in dict.fromkeys(template[~self._is_named[template]].tolist()):
            one = self._templates[number]
            errors = () if one.error is None else (one.error,)
            kinds = [op.kind for op in one.micro_ops]
            for codes, names in (
                (columns.names, (one.f,)),
                (columns.errors, errors),
                (columns.ops, kinds),
            ):
                if not may_name and not codes.keys() >= set(names):
                    raise _NewNameError
                for name in names:
                    codes[name]
            self._is_named[number] = True
        self._coded = self._codes_of_names()

    def _codes_of_names(self) -> _Coded:
        columns, known = self._columns, self._templates
        errors = [NONE if t.error is None else columns.errors.get(t.error, NONE) for t in known]
        ops = [columns.ops.get(op.kind, NONE) for one in known for op in one.micro_ops]
        return _Coded(
            f=np.array([columns.names.get(one.f, NONE) for one in known]),
            error=np.array(errors),
            op=np.array(ops, dtype=np.int64),
        )


def _runs(is_plain: Bools) -> Iterator[tuple[int, int]]:
    """Yield where consecutive lines begin and end that all have templates, or have none."""
    bounds = [0, *(np.flatnonzero(is_plain[1:] != is_plain[:-1]) + 1).tolist(), len(is_plain)]
    yield from pairwise(bounds)


def _begins(lengths: list[int]) -> I64:
    return np.cumsum([0, *lengths])


_KEY_MAX = (1 << _KEY_BITS) - 1
_SMALL_MAX = (1 << _SMALL_BITS) - 1
_NOT_SMALL = _KEY_MAX & ~_SMALL_MAX


def _packed(numbers: I64, base: I64, text: I64, one: I64, two: I64) -> I64:
    """Return names of partitions as numbers. Raises :class:`_LeftError` for a large one."""
    first = np.where(one == NONE, 0, numbers[base + one])
    second = np.where(two == NONE, 0, numbers[base + two])
    if max(first.max(initial=0), second.max(initial=0)) > _KEY_MAX:
        raise _LeftError
    return text << 2 * _KEY_BITS | first << _KEY_BITS | second


def _small(packed: I64) -> I64 | None:
    """Return indices for packed names; ``None`` if a number in a name is not small."""
    text = packed >> 2 * _KEY_BITS
    is_large = packed & (_NOT_SMALL << _KEY_BITS | _NOT_SMALL)
    if is_large.any() or text.max(initial=0) >= _SMALL_TEXTS:
        return None
    first = packed >> _KEY_BITS & _SMALL_MAX
    return text << 2 * _SMALL_BITS | first << _SMALL_BITS | packed & _SMALL_MAX


def _is_doubled(op: I64, codes: I64, keys: int) -> bool:
    """Return whether a poll has two lists of records of one partition."""
    several = op[1:] == op[:-1]
    if not several.any():
        return False
    found = np.sort(op * keys + codes)
    return bool((found[1:] == found[:-1]).any())
