"""Print the hash of a trace that uses every source of nondeterminism: ``talk.py SEED [TEXT]``.

The program uses whatever could make two runs differ: sets of tasks, ``asyncio.wait``, task groups,
the module ``random``, uuids, wall clocks, weak references, executors, a kill and a cut.
"""

import sys

from harness.simulation import determinism

if __name__ == "__main__":
    determinism.exec_pinned()
determinism.install()

import asyncio  # noqa: E402
import os  # noqa: E402
import random  # noqa: E402
import secrets  # noqa: E402
import time  # noqa: E402
import uuid  # noqa: E402
from contextlib import suppress  # noqa: E402

from harness.simulation.world import World  # noqa: E402


async def echo() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(1000):
                writer.write(data)
        writer.close()

    server = await asyncio.start_server(serve, None, 9092)
    await server.serve_forever()


async def ask(size: int) -> str:
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(3):
            reader, writer = await asyncio.open_connection("alpha", 9092)
            await asyncio.sleep(random.random() / 100)  # noqa: TID251 - is pinned
            writer.write(os.urandom(size) + uuid.uuid4().bytes + secrets.token_bytes(4))  # noqa: TID251
            writer.write(f"{time.time()!r} {time.monotonic_ns()} {hash(None)}".encode())  # noqa: TID251
            data = await reader.read(size)
            await loop.run_in_executor(None, len, data)
            writer.close()
            return f"{len(data)} {random.Random().random()}"
    except OSError as error:
        return type(error).__name__


def run(seed: int, text: str | None = None) -> str:
    """Run the program and return the hash of its trace."""
    with World(seed, trace_text=open(text, "w") if text else None) as world:  # noqa: PTH123
        alpha, beta = world.host("alpha"), world.host("beta")
        server = alpha.spawn(echo)

        async def main() -> None:
            rng = random.Random(seed)
            waiting = {asyncio.create_task(ask(rng.randint(1, 3000))) for _ in range(20)}
            while waiting:
                done, waiting = await asyncio.wait(  # noqa: TID251 - is pinned
                    waiting, return_when=asyncio.FIRST_COMPLETED
                )
                world.note(" ".join(task.result() for task in done))
            async with asyncio.TaskGroup() as group:
                for size in range(5):
                    group.create_task(ask(size + 1))
            world.network.cut("beta", "alpha")
            world.note(await ask(7))
            world.network.heal("beta", "alpha")
            one, other = asyncio.create_task(ask(100_000)), asyncio.create_task(ask(7))
            await asyncio.sleep(rng.uniform(0.001, 0.004))
            server.kill()
            world.note(f"{await one} {await other} {await ask(7)}")
            alpha.spawn(echo)
            await asyncio.sleep(0.1)
            world.note(await ask(7))

        world.run(beta.spawn(main))
        return world.trace.digest()


if __name__ == "__main__":
    print(run(int(sys.argv[1]), *sys.argv[2:3]))  # noqa: T201
