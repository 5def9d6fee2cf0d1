"""A stand-in for a broker or ZooKeeper: it listens, answers probes and exits cleanly on SIGTERM.

Usage: fake_node.py PROTOCOL HOST:PORT… With ``FAKE_DIES`` in the environment it exits at once. On
SIGUSR1 it closes its ports and continues to run.
"""

import asyncio
import os
import signal
import socket
import struct
import sys


async def answer_kafka(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while True:
        (size,) = struct.unpack(">i", await reader.readexactly(4))
        body = await reader.readexactly(size)
        (correlation,) = struct.unpack_from(">i", body, 4)
        writer.write(struct.pack(">iihi", 10, correlation, 0, 0))


async def answer_zookeeper(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    (size,) = struct.unpack(">i", await reader.readexactly(4))
    await reader.readexactly(size)
    writer.write(struct.pack(">iiiqi16x", 36, 0, 0, 0, 16))
    await reader.read()


def listening(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    server.bind((host, int(port)))
    return server


async def serve(protocol: str, addresses: list[str]) -> None:
    answer = answer_kafka if protocol == "kafka" else answer_zookeeper

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await answer(reader, writer)
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            writer.close()

    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    servers = [
        await asyncio.start_server(connected, sock=listening(address)) for address in addresses
    ]

    def hang() -> None:
        for server in servers:
            server.close()

    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, hang)
    sys.stdout.write("listening\n")
    sys.stdout.flush()
    await stopped.wait()
    sys.stdout.write("stopped\n")
    os._exit(0)


if "FAKE_DIES" in os.environ:
    sys.exit("no luck today")
asyncio.run(serve(sys.argv[1], sys.argv[2:]))
