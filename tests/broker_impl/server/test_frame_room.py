import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_impl.server import frame_room
from broker_impl.server.frame_room import FrameRoom


class Arriving:
    """A frame of a given size, which records the calls of the room."""

    def __init__(self, room: FrameRoom, size: int) -> None:
        self.progress_at = 0.0
        self.size = size
        self.has_room = False
        self.has_stalled = False
        self.admitted = asyncio.Event()
        self._room = room

    def ask(self) -> bool:
        self.has_room = self._room.admit(self, self.size)
        return self.has_room

    def advance(self) -> None:
        assert self.ask(), "it is called when there is room"
        self.admitted.set()

    def stalled(self) -> None:
        self.has_stalled = True
        self._room.release(self)


@given(st.lists(st.tuples(st.integers(1, 15), st.integers(0, 5)), max_size=30))
def test_room_is_bounded_and_given_in_order(steps: list[tuple[int, int]]) -> None:
    """Frames exceed the bound only if a single one is larger, and room is given in order.

    A waiting frame is behind all frames that have room, and no frame waits in an empty room.
    """

    async def run() -> None:
        room = FrameRoom(10)
        frames: list[Arriving] = []
        for size, leaves in steps:
            frames.append(Arriving(room, size))
            frames[-1].ask()
            if leaves < len(frames):
                room.release(frames.pop(leaves))
            await asyncio.sleep(0)
            holding = [frame for frame in frames if frame.has_room]
            assert room.bytes_held == sum(frame.size for frame in holding)
            assert room.bytes_held <= 10 or len(holding) == 1
            assert [frame.has_room for frame in frames] == sorted(
                (frame.has_room for frame in frames), reverse=True
            )
            assert holding or not frames
            assert room.is_crowded == (len(holding) < len(frames))
        for frame in frames:
            room.release(frame)
        assert room.bytes_held == 0
        assert not room.is_crowded

    asyncio.run(run())


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frame_room, "STALLED_S", 0.02)


async def test_a_stalled_frame_loses_its_room_to_those_who_wait(soon: None) -> None:
    """A stalled frame loses its room once another frame waits.

    A frame that makes progress, or has just got its room, keeps it.
    """
    room = FrameRoom(10)
    silent, busy, next_one = (Arriving(room, size) for size in (4, 6, 4))
    assert silent.ask()
    assert busy.ask()
    loop = asyncio.get_running_loop()
    busy.progress_at = loop.time() + 60
    await asyncio.sleep(0.05)
    assert not silent.has_stalled
    next_one.ask()
    async with asyncio.timeout(5):
        await next_one.admitted.wait()
    assert [frame.has_stalled for frame in (silent, busy, next_one)] == [True, False, False]
