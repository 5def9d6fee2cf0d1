"""Plays one case against the broker, and says what must not have happened."""

import asyncio
import logging
import resource
import time
import traceback
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field

from bench.frames import cases
from bench.frames.cases import AFTER, BEFORE, HANDSHAKE, VERSIONS, Case
from bench.frames.client import TURN_S, TURNS_MAX, Client
from bench.frames.rig import BROKERS, DOOR, OPEN, RECEIVE_MAX, SECRET, Rig
from broker_impl.api.table import APIS
from broker_impl.errors import WireError
from broker_impl.wire.framing import decode_response
from broker_impl.wire.messages import response_module

SCRATCH_BYTES = 256 * 1024
"""What a connection may have received at once before it looks at the first frame."""
GROWTH_MAX_KB = 64 * 1024
"""The most by which one case may raise the memory of the process."""
SLOW_S = 5.0
"""The most time of the processor that one case may take."""
SERVER_FIRST = b"r="
"""The beginning of the only token that a client without a password receives: SCRAM's first."""
_LISTENERS = {cases.OPEN: OPEN, BEFORE: DOOR, cases.BROKERS: BROKERS}


@dataclass(slots=True)
class Result:
    """What a case led to."""

    answers: int = 0
    is_closed: bool = False
    """Whether the broker closed the connection."""
    written: bytes = b""
    problems: list[str] = field(default_factory=list)


class Errors(logging.Handler):
    """Collects what is logged as an error: an exception that no code expects."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        self.found.append(described(error) if error else f"logged: {record.getMessage()}")


def described(error: BaseException) -> str:
    """Return an exception and where it was raised, in one line."""
    places = [
        f"{frame.filename.partition('broker_impl/')[2] or frame.filename}:{frame.lineno}"
        for frame in traceback.extract_tb(error.__traceback__)
    ]
    text = str(error).replace("\n", " ")[:200]
    return f"{type(error).__name__}: {text} ({' < '.join(reversed(places[-3:]))})"


async def play(rig: Rig, case: Case, errors: Errors) -> Result:
    """Send what the case sends; return what came back, and what must not have happened."""
    result = Result()
    began, memory_kb = time.process_time(), _memory_kb()
    listener = _LISTENERS.get(case.mode)
    client = await rig.authenticated() if listener is None else rig.client(listener)
    already = len(client.transport.written)
    try:
        await client.feed(case.data, case.piece_bytes)
        held = rig.server.bounds.request_bytes
        if case.mode == BEFORE and held > RECEIVE_MAX + SCRATCH_BYTES:
            result.problems.append(f"{held} bytes are held for a client without authentication")
        await client.settle()
        result.is_closed = client.transport.is_closing()
        await client.leave()
    except Exception as error:  # noqa: BLE001 - this is what the case looks for
        result.problems.append(f"escaped: {described(error)}")
    result.written = bytes(client.transport.written[already:])
    result.problems += errors.found
    errors.found = []
    result.problems += [each async for each in _left_behind(rig)]
    result.problems += _wrong_answers(rig, case, client, result)
    if (seconds := time.process_time() - began) > SLOW_S:
        result.problems.append(f"the case took more than {SLOW_S:g} s: {seconds:.0f} s")
    if (growth := _memory_kb() - memory_kb) > GROWTH_MAX_KB:
        result.problems.append(f"the memory grew by {growth // 1024} MB")
    return result


def _memory_kb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


async def _left_behind(rig: Rig) -> AsyncIterator[str]:
    """Yield what the broker still holds after the connection has ended."""
    if rig.broker._failure is not None:
        yield f"the broker ended: {described(rig.broker._failure)}"
        return
    for _ in range(TURNS_MAX):
        if not (_held(rig) or len(rig.broker.waiting)):
            return
        await asyncio.sleep(TURN_S)
    yield f"{_held(rig)} bytes and {len(rig.broker.waiting)} requests are still held"


def _held(rig: Rig) -> int:
    rooms = sum(room.bytes_held for room in rig.server._rooms.values())
    return rig.server.bounds.request_bytes + rooms


def _wrong_answers(rig: Rig, case: Case, client: Client, result: Result) -> Iterator[str]:
    """Yield what is wrong with the responses of a connection."""
    principal = client.connection._session.principal
    if principal != ("User:alice" if case.mode == AFTER else "User:ANONYMOUS"):
        yield f"mode {case.mode}: the client became {principal}"
    if case.mode in (BEFORE, AFTER) and SECRET in result.written:
        yield f"mode {case.mode}: a record was returned to a client without the right to read it"
    sent = iter(list(cases.split(case.data)))
    is_raw = False
    for answer in cases.split(result.written):
        if is_raw:  # after SaslHandshake v0, tokens without headers
            result.answers += 1
            if not answer.startswith(SERVER_FIRST):
                yield "something else than a token was returned after SaslHandshake v0"
            continue
        number = answer[:4]
        request = next((each for each in sent if each[4:8] == number), None)
        if request is None:
            yield "a response belongs to no request"
            return
        result.answers += 1
        key, version = (int.from_bytes(request[at : at + 2], "big", signed=True) for at in (0, 2))
        if case.mode == BEFORE and key not in cases.UNAUTHENTICATED:
            yield f"API {key} was answered before the authentication"
        if key == VERSIONS and version not in APIS[key].served:
            version = 0
        try:
            _, body = decode_response(memoryview(answer), key, version)
            message = response_module(key).decode(body, version)
            rig.learn(message)
            is_raw = key == HANDSHAKE and version == 0 and not message.error_code
        except WireError as error:
            yield f"the response of API {key} v{version} cannot be read: {error}"
