"""Collects all kinds of hostile inputs, and draws samples of them."""

import random
from collections.abc import Callable, Iterable, Sequence

from bench.hostile import commands, edn, files, folders, histories, json_texts, parquet, toml_files
from bench.hostile.case import Case

MUTATED = 400
"""The number of random mutations of one file from which a sample is drawn."""

Pool = Callable[[random.Random], Iterable[Case]]

POOLS: dict[str, Pool] = {
    "types": lambda rng: histories.wrong_types(),
    "truncated": lambda rng: histories.truncated(),
    "bytes": lambda rng: histories.mutated(rng, MUTATED),
    "doubled": lambda rng: json_texts.doubled(),
    "tokens": lambda rng: json_texts.tokens(),
    "shapes": lambda rng: json_texts.shapes(),
    "files": lambda rng: files.whole_files(),
    "special": lambda rng: files.special_files(),
    "edn": lambda rng: edn.edn(),
    "edn-bytes": lambda rng: edn.mutated(rng, MUTATED),
    "parquet": lambda rng: parquet.parquet(),
    "parquet-bytes": lambda rng: parquet.mutated(rng, MUTATED // 4),
    "plans": lambda rng: toml_files.plans(),
    "suites": lambda rng: toml_files.suites(),
    "commands": lambda rng: commands.command_lines(),
    "folders": lambda rng: folders.folders(),
    "processes": lambda rng: commands.processes(),
}
KINDS = tuple(POOLS)


def sample(seed: int, count: int | None, kinds: Sequence[str] = KINDS) -> list[Case]:
    """Draw the same number of inputs of each kind, as far as possible; ``count=None``: all."""
    rng = random.Random(seed)
    pools = sorted((list(POOLS[kind](rng)) for kind in kinds), key=len)
    if count is None:
        return [case for pool in pools for case in pool]
    chosen: list[Case] = []
    for place, pool in enumerate(pools):
        share = (count - len(chosen)) // (len(pools) - place)
        chosen += rng.sample(pool, min(share, len(pool)))
    return chosen
