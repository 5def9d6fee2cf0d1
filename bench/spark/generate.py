"""Writes a large generated history, as Parquet or as lines of JSON by the suffix of its path.

python -m bench.spark.generate transactions 1000000 history.parquet --hot 0.9 --planted
"""

import argparse
from pathlib import Path

from bench.spark import blocks, histories
from bench.spark.histories import Spec
from checkers import parquet
from checkers.pieces import SCHEMA


def write(spec: Spec, path: Path) -> None:
    """Write a history block by block; a Parquet file has one row group for each block."""
    (_write_parquet if path.suffix == ".parquet" else _write_lines)(spec, path)


def _write_parquet(spec: Spec, path: Path) -> None:
    tables = (blocks.table(block, spec.keys) for block in histories.blocks(spec))
    parquet.write(path, SCHEMA, tables)


def _write_lines(spec: Spec, path: Path) -> None:
    with path.open("wb") as file:
        for block in histories.blocks(spec):
            file.write(blocks.lines(block, spec.keys))


def main() -> None:
    """Write the history that the command line describes."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("kind", choices=sorted(histories.PLANTED))
    parser.add_argument("operations", type=int, metavar="COUNT")
    parser.add_argument("path", type=Path)
    parser.add_argument("--partitions", type=int, default=32)
    parser.add_argument("--hot", type=float, default=0.0, help="share of one partition")
    parser.add_argument("--planted", action="store_true", help="plant anomalies")
    parser.add_argument("--seed", type=int, default=0)
    asked = vars(parser.parse_args())
    path = asked.pop("path")
    write(Spec(**asked), path)


if __name__ == "__main__":
    main()
