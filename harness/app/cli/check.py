"""``faultline check``: recorded histories are judged again."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.app import options
from harness.app.cli.output import print_json

if TYPE_CHECKING:
    from harness.app.large_lists import Where

_OF_SPARK = ("--spark-master", "--conf")
_OF_OBJECTS = (
    *_OF_SPARK,
    "--model",
    "--initial",
    "--consistency",
    "--anomaly",
    "--assume",
    "--keyed",
    "--steps",
    "--memory",
    "--page",
    "--parquet",
    "--pictures",
    "--json",
    "--inline",
)


@click.command(
    cls=options.Command,
    epilog=options.example(
        "faultline check results/20261120T161500Z-idempotent-seed7",
        "faultline check history.jsonl --inline --set producer.acks=1",
        "faultline check jepsen/store/latest/history.edn --inline",
        "faultline check 's3a://bucket/nightly/*/history.jsonl.gz'",
        "faultline check etcd/history.edn --model cas-register",
        "faultline check dgraph/history.edn --model list-append --consistency serializable",
    ),
)
@click.argument("paths", nargs=-1, required=True, metavar="DIR|FILE|URI…")
@click.option("--inline", is_flag=True, help="judge in this process, without Spark")
@click.option("--set", "settings", multiple=True, metavar="WHOSE.KEY=VALUE",
              help="judge by this setting instead of the plan's")  # fmt: skip
@click.option("--results", type=click.Path(path_type=Path), default="results", metavar="DIR",
              help="judgements of read-only folders go to DIR/judgements (results)")  # fmt: skip
@click.option("--model", metavar="NAME", help="judge another data type than Kafka's logs")
@click.option("--initial", metavar="JSON", help="with --model: what registers hold at first (0)")
@click.option("--consistency", multiple=True, metavar="NAME",
              help="with --model: linearizable, sequential, zookeeper; for transactions"
              " strict-serializable, snapshot-isolation, …")  # fmt: skip
@click.option("--anomaly", "anomalies", multiple=True, metavar="NAME",
              help="with --model: another illegal anomaly of transactions")  # fmt: skip
@click.option("--assume", multiple=True, metavar="NAME",
              help="with --model rw-register: wfr-keys, linearizable-keys, …")  # fmt: skip
@click.option("--keyed", is_flag=True, help="with --model: values are pairs of a key and a value")
@click.option("--steps", type=options.COUNT, help="with --model: how long to search (50,000,000)")
@click.option("--memory", type=options.COUNT, metavar="MB",
              help="with --model: memory for the search (2,048)")  # fmt: skip
@click.option("--page", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="with --model: write a page with drawings of what is wrong")  # fmt: skip
@click.option("--parquet", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="with --model: write the operations as a Parquet file")  # fmt: skip
@click.option("--pictures", type=click.Path(path_type=Path, file_okay=False, writable=True),
              metavar="DIR",
              help="with --model: write each drawing of the page as an SVG file")  # fmt: skip
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
    **objects: Any,
) -> int:
    """Judge recorded histories again: folders of runs, or bare files.

    A bare file is a history.jsonl, a Parquet file, or the history.edn of a run of Jepsen's Kafka
    workload; texts may be compressed (.gz, .zst, .bz2). Patterns such as 'results/*-seed7' are
    expanded. A URI (file:, hdfs:, s3a: …) is read by Spark; nothing is written to it.
    A bare history is judged by the strictest contract unless --set says otherwise. A
    judgement under other settings than the plan's never replaces the verdict of a run: it is stored
    separately.

    With --model, files are histories of any data type (EDN, JSON, logs, Parquet), and a folder
    stands for all of them in it: docs/objects.md has the models.
    """
    if objects["model"] is not None:
        given = [each for each in options.given() if each.startswith("--")]
        if misplaced := [each for each in given if each not in _OF_OBJECTS]:
            raise click.UsageError(f"{misplaced[0]} has no effect with --model.")
        is_on_spark = any(each in _OF_SPARK for each in given)
        where: Where | None = "inline" if inline else "spark" if is_on_spark else None
        return _check_objects(paths, objects, where, as_json)
    if misplaced := [f"--{name}" for name, value in objects.items() if value]:
        raise click.UsageError(f"{misplaced[0].replace('anomalies', 'anomaly')} needs --model.")
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


def _check_objects(
    paths: tuple[str, ...], asked: dict[str, Any], where: "Where | None", as_json: bool
) -> int:
    """Judge histories of other data types; return the exit status."""
    import msgspec

    from checkers import objects
    from checkers.verdict import Verdict, exit_status, merge
    from harness.app import check_objects

    initial: Any = objects.UNSET
    if asked["initial"] is not None:
        try:
            initial = msgspec.json.decode(asked["initial"])
        except msgspec.DecodeError:
            raise click.UsageError(f"--initial {asked['initial']} is not JSON.") from None
    request = check_objects.Request(
        asked["model"],
        initial,
        asked["keyed"],
        asked["consistency"],
        asked["anomalies"],
        asked["assume"],
        _budget(asked["steps"], asked["memory"]),
        asked["page"],
        asked["parquet"],
        asked["pictures"],
        where,
    )

    def show(found: check_objects.FileVerdict) -> None:
        if not as_json:
            for line in check_objects.lines(found):
                click.echo(line)

    verdicts = check_objects.judge_all(paths, request, show)
    if as_json:
        print_json(verdicts[0] if len(verdicts) == 1 else verdicts)
    elif len(verdicts) > 1:
        click.echo(check_objects.summary(verdicts))
    if asked["page"] is not None and not as_json:
        click.echo(f"page: {asked['page']}")
    if asked["pictures"] is not None and not as_json:
        for path in verdicts[0].pictures or ("none",):
            click.echo(f"picture: {path}")
    return exit_status(Verdict(valid=merge(each.verdict.valid for each in verdicts)))


def _budget(steps: int | None, memory: int | None) -> Any:
    """Return how long to search; ``None`` unless the user says so."""
    from checkers.linearizability.judging import Budget

    if steps is None and memory is None:
        return None
    default = Budget()
    return Budget(steps or default.steps, default.bytes if memory is None else memory << 20)
