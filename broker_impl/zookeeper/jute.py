"""Jute, ZooKeeper's serialization: a record is its fields in order, without tags.

A record class is its own schema: annotated fields, in the order of the wire. The codec is compiled
from the annotations on first use, to Python functions without a loop over the fields. All integers
are big-endian; strings, buffers and vectors start with a 32-bit length, -1 for null.
"""

import struct
from collections.abc import Callable, Iterator
from functools import cache
from typing import Annotated, Any, NamedTuple, Self, get_args, get_origin, get_type_hints

import msgspec

from broker_impl.errors import FrameTooLarge, WireError

FRAME_BYTES_MAX = 0xFFFFF
"""ZooKeeper's ``jute.maxbuffer``: a longer frame closes the connection that sent it."""

_INT = struct.Struct(">i")
_BOOL = struct.Struct(">?")


class Reader:
    """Reads values from one frame, front to back; each length is checked against the rest."""

    __slots__ = ("_at", "_buffer")

    def __init__(self, buffer: bytes, at: int = 0) -> None:
        self._buffer = buffer
        self._at = at

    @property
    def remaining(self) -> int:
        """Bytes not yet read."""
        return len(self._buffer) - self._at

    def unpack(self, fixed: struct.Struct) -> tuple[Any, ...]:
        """Read the next values of fixed size."""
        at = self._at
        try:
            values = fixed.unpack_from(self._buffer, at)
        except struct.error:
            short = f"{fixed.size} bytes are required, {self.remaining} are left"
            raise WireError(short) from None
        self._at = at + fixed.size
        return values

    def length(self) -> int:
        """Read a count of bytes, or of items that take at least one byte each; -1 for null."""
        (count,) = self.unpack(_INT)
        if not -1 <= count <= len(self._buffer) - self._at:
            raise _announced(count, self.remaining)
        return int(count)

    def buffer(self) -> bytes | None:
        """Read a buffer; None if the sender wrote null."""
        length = self.length()
        if length < 0:
            return None
        at = self._at
        self._at = end = at + length
        return self._buffer[at:end]

    def ustring(self) -> str:
        """Read a string; null counts as the empty one, which kazoo writes as null."""
        length = self.length()
        at = self._at
        self._at = end = at + max(0, length)
        try:
            return str(self._buffer[at:end], "utf-8")
        except UnicodeDecodeError as error:
            raise WireError(f"the text is not UTF-8: {error.reason}") from None

    def passes(self, expected: bytes) -> bool:
        """Go past these bytes if they are the next ones, and return whether they are."""
        if not self._buffer.startswith(expected, self._at):
            return False
        self._at += len(expected)
        return True

    def end(self) -> None:
        """Check that the frame ends here."""
        if self.remaining:
            raise WireError(f"{self.remaining} bytes follow the record")


def _announced(count: int, remaining: int) -> WireError:
    return WireError(f"{count} items are announced in {remaining} bytes")


def write_buffer(value: bytes | None, out: bytearray) -> None:
    """Append a buffer with its length."""
    if value is None:
        out += b"\xff\xff\xff\xff"
    else:
        out += _INT.pack(len(value))
        out += value


def write_ustring(value: str, out: bytearray) -> None:
    """Append a string with its length in bytes."""
    encoded = value.encode()
    out += _INT.pack(len(encoded))
    out += encoded


class _Fixed:
    """A field of fixed size, by its ``struct`` letter."""

    def __init__(self, letter: str) -> None:
        self.letter = letter


class Varying:
    """A field of variable size, with its own read and write functions."""

    def __init__(
        self, read: Callable[[Reader], Any], write: Callable[[Any, bytearray], None]
    ) -> None:
        self.read = read
        self.write = write


Int = Annotated[int, _Fixed("i")]
Long = Annotated[int, _Fixed("q")]
Bool = Annotated[bool, _Fixed("?")]
_TEXT = Varying(Reader.ustring, write_ustring)
_BYTES = Varying(Reader.buffer, write_buffer)
UString = Annotated[str, _TEXT]
Buffer = Annotated[bytes | None, _BYTES]


def _read_trailing_bool(reader: Reader) -> bool | None:
    return bool(reader.unpack(_BOOL)[0]) if reader.remaining else None


def _write_trailing_bool(value: bool | None, out: bytearray) -> None:
    if value is not None:
        out.append(value)


TrailingBool = Annotated[bool | None, Varying(_read_trailing_bool, _write_trailing_bool)]
"""A flag at the very end of a record; old programs omit it (None)."""


class Record(msgspec.Struct, frozen=True, gc=False):
    """A jute record: an immutable value that can be read and written.

    It can be part of no cycle, so the garbage collector need not visit it.
    """

    @classmethod
    def read(cls, reader: Reader) -> Self:
        """Read one record from a frame.

        Raises:
            WireError: the bytes are not such a record.
        """
        return _compiled(cls)["read"](reader)  # type: ignore[no-any-return]

    def write(self, out: bytearray) -> None:
        """Append this record to the output."""
        _compiled(type(self))["write"](self, out)

    def encode(self) -> bytes:
        """Encode this record alone."""
        out = bytearray()
        self.write(out)
        return bytes(out)


def frequent(item: type[Record], value: tuple[Record, ...]) -> Varying:
    """Return the codec of a vector that often is this value.

    Its bytes are recognized as a whole, and all records share the one object.
    """
    vector = _vector(Varying(item.read, item.write))
    encoded = bytearray()
    vector.write(value, encoded)
    expected = bytes(encoded)

    def read(reader: Reader) -> tuple[Record, ...]:
        return value if reader.passes(expected) else vector.read(reader)

    def write(values: tuple[Record, ...], out: bytearray) -> None:
        if values is value:
            out += expected
        else:
            vector.write(values, out)

    return Varying(read, write)


class _Step(NamedTuple):
    """Fields of fixed size, by their names and ``struct`` letters, and a variable one after them.

    The length of a text or buffer is packed together with the fixed fields.
    """

    fixed: tuple[str, ...]
    letters: str
    field: str = ""
    codec: Varying | None = None

    @property
    def has_length(self) -> bool:
        """Whether the step ends with the length of a text or buffer."""
        return self.codec is _TEXT or self.codec is _BYTES

    @property
    def struct(self) -> struct.Struct:
        """Everything of fixed size in this step."""
        return struct.Struct(f">{self.letters}{'i' if self.has_length else ''}")


def _steps(record: type[Record]) -> Iterator[_Step]:
    hints = get_type_hints(record, include_extras=True)
    letters, fixed = "", tuple[str, ...]()
    for name in record.__struct_fields__:
        codec = _codec(hints[name])
        if isinstance(codec, _Fixed):
            letters += codec.letter
            fixed += (name,)
        else:
            yield _Step(fixed, letters, name, codec)
            letters, fixed = "", ()
    if fixed:
        yield _Step(fixed, letters)


@cache
def _compiled(record: type[Record]) -> dict[str, Any]:
    """Compile the functions ``read(reader)`` and ``write(record, out)`` of a record class.

    They become the class's methods, unless it defines those itself. A loop over the fields takes
    about twice the time, and a server reads and writes several records for each request.
    """
    scope: dict[str, Any] = {
        "Record": record,
        "StructError": struct.error,
        "WireError": WireError,
        "announced": _announced,
    }
    read = ["def read(reader):", " buffer, at = reader._buffer, reader._at", " try:", "  pass"]
    write = ["def write(record, out):", " pass"]
    for number, step in enumerate(_steps(record)):
        if step.struct.size:
            scope[f"pack{number}"] = step.struct.pack
            scope[f"unpack{number}"] = step.struct.unpack_from
        if step.codec is not None:
            scope[f"read{number}"], scope[f"write{number}"] = step.codec.read, step.codec.write
        read += (f"  {line}" for line in _reading(number, step))
        write += (f" {line}" for line in _writing(number, step))
    read += [
        " except StructError:",
        "  raise WireError(f'{len(buffer) - at} bytes are left, too few for the record') from None",
        " except UnicodeDecodeError as error:",
        "  raise WireError(f'the text is not UTF-8: {error.reason}') from None",
        " reader._at = at",
        f" return Record({', '.join(f'its_{name}' for name in record.__struct_fields__)})",
    ]
    source = "\n".join((*read, *write))
    exec(compile(source, f"<jute of {record.__name__}>", "exec"), scope)
    if record.read.__func__ is Record.read.__func__:  # type: ignore[attr-defined]
        record.read = staticmethod(scope["read"])  # type: ignore[method-assign]
    if record.write is Record.write:
        record.write = scope["write"]  # type: ignore[method-assign]
    return scope


def _reading(number: int, step: _Step) -> Iterator[str]:
    """The statements that read the fields of a step, each into a variable ``its_…``."""
    names = [f"its_{name}" for name in step.fixed] + ["size"] * step.has_length
    if names:
        yield f"{', '.join(names)}, = unpack{number}(buffer, at)"
        yield f"at += {step.struct.size}"
    if step.has_length:
        yield "if not -1 <= size <= len(buffer) - at: raise announced(size, len(buffer) - at)"
        yield "end = at + size if size > 0 else at"
        if step.codec is _TEXT:
            yield f"its_{step.field} = str(buffer[at:end], 'utf-8')"
        else:
            yield f"its_{step.field} = buffer[at:end] if size >= 0 else None"
        yield "at = end"
    elif step.codec is not None:
        yield "reader._at = at"
        yield f"its_{step.field} = read{number}(reader)"
        yield "at = reader._at"


def _writing(number: int, step: _Step) -> Iterator[str]:
    """The statements that append the fields of a step."""
    values = [f"record.{name}" for name in step.fixed]
    if step.has_length:
        yield f"value = record.{step.field}" + (".encode()" if step.codec is _TEXT else "")
        values.append("-1 if value is None else len(value)")
    if values:
        yield f"out += pack{number}({', '.join(values)})"
    if step.has_length:
        yield "if value: out += value"
    elif step.codec is not None:
        yield f"write{number}(record.{step.field}, out)"


def _codec(hint: Any) -> _Fixed | Varying:
    if get_origin(hint) is Annotated:
        codec = get_args(hint)[1]
        assert isinstance(codec, _Fixed | Varying), f"{hint} is not a jute type"
        return codec
    if get_origin(hint) is tuple:
        return _vector(_codec(get_args(hint)[0]))
    assert issubclass(hint, Record), f"{hint} is not a jute type"
    return Varying(hint.read, hint.write)


def _vector(item: _Fixed | Varying) -> Varying:
    if isinstance(item, _Fixed):
        fixed = struct.Struct(">" + item.letter)
        item = Varying(
            lambda reader: reader.unpack(fixed)[0], lambda value, out: out.extend(fixed.pack(value))
        )
    read, write = item.read, item.write

    def read_all(reader: Reader) -> tuple[Any, ...]:
        return tuple(read(reader) for _ in range(reader.length()))

    def write_all(values: tuple[Any, ...], out: bytearray) -> None:
        out += _INT.pack(len(values))
        for value in values:
            write(value, out)

    return Varying(read_all, write_all)


class FrameReader:
    """Bytes in, whole frames out; the caller owns the socket."""

    def __init__(self, bytes_max: int = FRAME_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._buffer = bytearray()

    def receive(self, data: bytes) -> None:
        """Add bytes that were read from the socket."""
        self._buffer += data

    @property
    def waiting(self) -> int:
        """The number of bytes that were received and not returned."""
        return len(self._buffer)

    def peek(self) -> bytes:
        """The first four bytes, or fewer if no more have arrived: perhaps a four-letter word."""
        return bytes(self._buffer[:4])

    def frames(self) -> Iterator[bytes]:
        """Yield the complete frames, without their lengths.

        Raises:
            FrameTooLarge: a length beyond the limit, or below zero.
        """
        data, at = b"", 0
        try:
            while len(self._buffer) - at >= 4:
                (size,) = _INT.unpack_from(self._buffer, at)
                if not 0 <= size <= self._bytes_max:
                    raise FrameTooLarge(
                        f"a frame announces {size} bytes, only {self._bytes_max} are allowed"
                    )
                end = at + 4 + size
                if len(self._buffer) < end:
                    return
                if len(data) < end:
                    data = bytes(self._buffer)  # a slice of bytes takes a third of the time
                frame = data[at + 4 : end]
                at = end
                yield frame
        finally:
            del self._buffer[:at]


def frame(*parts: Record) -> bytes:
    """Encode one packet: the records one after the other, after their total length."""
    out = bytearray(4)
    for part in parts:
        part.write(out)
    _INT.pack_into(out, 0, len(out) - 4)
    return bytes(out)
