"""``faultline check``: recorded histories are judged again."""

from pathlib import Path

import click

from harness.app import options
from harness.app.cli.output import print_json


@click.command(
    cls=options.Command,
    epilog=options.example(
        "faultline check results/20261120T161500Z-idempotent-seed7",
        "faultline check history.jsonl --inline --set producer.acks=1",
        "faultline check jepsen/store/latest/history.edn --inline",
        "faultline check 's3a://bucket/nightly/*/history.jsonl.gz'",
    ),
)
@click.argument("paths", nargs=-1, required=True, metavar="DIR|FILE|URI…")
@click.option("--inline", is_flag=True, help="judge in this process, without Spark")
@click.option("--set", "settings", multiple=True, metavar="WHOSE.KEY=VALUE",
              help="judge by this setting instead of the plan's")  # fmt: skip
@click.option("--results", type=click.Path(path_type=Path), default="results", metavar="DIR",
              help="judgements of read-only folders go to DIR/judgements (results)")  # fmt: skip
@options.spark_engine
@options.strict
@options.json_output
def check(
    paths: tuple[str, ...],
    inline: bool,
    strict: bool,
    settings: tuple[str, ...],
    results: Path,
    as_json: bool,
) -> int:
    """Judge recorded histories again: folders of runs, or bare files.

    A bare file is a history.jsonl, a Parquet file, or the history.edn of a run of Jepsen's Kafka
    workload; texts may be compressed (.gz, .zst, .bz2). Patterns such as 'results/*-seed7' are
    expanded. A URI (file:, hdfs:, s3a: …) is read by Spark; nothing is written to it.
    A bare history is judged by the strictest contract unless --set says otherwise. A
    judgement under other settings than the plan's never replaces the verdict of a run: it is stored
    separately.
    """
    from checkers.expectations import STRICT
    from checkers.verdict import Verdict, exit_status, merge
    from harness.app import check_many, plan_resolution, uris
    from harness.app.progress import Screen

    wanted = dict(STRICT) if strict else {}
    wanted |= {
        f"{component}.{key}": value
        for component, key, value in plan_resolution.settings_of(settings)
    }
    say = (lambda line: click.echo(line, err=True)) if as_json else click.echo
    verdicts = check_many.judge_all(
        [*map(uris.location, paths)],
        check_many.Request(inline, wanted, results, not as_json),
        Screen(),
        say,
    )
    if as_json:
        print_json(verdicts[0] if len(verdicts) == 1 else verdicts)
    worst = merge(verdict.valid for verdict in verdicts)
    return exit_status(Verdict(valid=worst))
