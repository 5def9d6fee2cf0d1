"""The beginnings of frames are found in a stream, however it arrives."""

from struct import pack

from hypothesis import given
from hypothesis import strategies as st

from broker_impl.wire.framing import RequestHeader, encode_request, encode_response
from harness.cluster.mesh.message_frames import REQUEST, RESPONSE
from harness.cluster.simulated.frame_walk import Walk

FETCH = 1


def request(key: int, number: int, size: int = 20) -> bytes:
    return b"".join(encode_request(RequestHeader(key, 5, number, "c"), [bytes(size)]))


def response(key: int, number: int, size: int = 20) -> bytes:
    return b"".join(encode_response(key, 5, number, [bytes(size)]))


@given(
    frames=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 100), st.integers(0, 300))),
    cuts=st.lists(st.integers(1, 40)),
)
def test_every_frame_is_found_once(frames: list[tuple[int, int, int]], cuts: list[int]) -> None:
    """Every frame is found once, however the stream is divided into runs."""
    stream = b"".join(request(key, number, size) for key, number, size in frames)
    walk = Walk(REQUEST)
    found = []
    at = 0
    # The first run holds at least a header, as a first write does.
    for size in [12, *cuts, len(stream)]:
        run = stream[at : at + size]
        at += len(run)
        for start, (_, key, _, number) in walk.frames(run):
            assert 0 <= start <= len(run)
            found.append((key, number))
    assert found == [(key, number) for key, number, _ in frames]


def test_it_finds_its_place() -> None:
    """After the middle of a message, parsing resumes at the next run that begins with a frame."""
    walk = Walk(REQUEST)
    assert list(walk.frames(b"\xff" * 500)) == []
    assert [head[3] for _, head in walk.frames(request(FETCH, 7) + request(FETCH, 8))] == [7, 8]
    answers = Walk(RESPONSE)
    assert list(answers.frames(pack(">ii", 3, 1))) == [], "no answer is as short"
    assert [head[1] for _, head in answers.frames(response(FETCH, 9))] == [9]


def test_it_knows_the_first_byte() -> None:
    """From the beginning of a connection, a first run may be shorter than the head of a frame."""
    walk = Walk(REQUEST, is_lost=False)
    assert list(walk.frames(request(FETCH, 7)[:5])) == []
    assert [head[3] for _, head in walk.frames(request(FETCH, 7)[5:])] == [7]
    assert not walk.is_lost
    assert list(walk.frames(b"\xff" * 20)) == []
    assert walk.is_lost
    answers = Walk(RESPONSE, is_lost=False)
    short = pack(">iih", 6, 3, 0)
    assert [head[1] for _, head in answers.frames(short + short)] == [3, 3]
