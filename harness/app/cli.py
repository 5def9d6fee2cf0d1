"""The command line: verbs, options and exit statuses; what they do is in the modules beside it.

Imports are kept in the verbs, so that ``--help`` and a refusal come at once.
"""

import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import click
import msgspec

from harness.app.request import Refused

WRONG_REQUEST = 64
FAILED = 70

F = TypeVar("F", bound=Callable[..., Any])


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a verb and exit: 0 valid, 1 invalid, 2 unknown, 64 a wrong request, 70 faultline failed.

    Whatever is wrong with a request is told in one line.
    """
    try:
        status = faultline.main(
            args=None if arguments is None else list(arguments),
            prog_name="faultline",
            standalone_mode=False,
        )
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        status = WRONG_REQUEST
    except click.UsageError as error:
        status = _refuse(error.format_message())
    except Refused as error:
        status = _refuse(str(error))
    except (click.Abort, KeyboardInterrupt):
        click.echo("faultline: interrupted", err=True)
        status = FAILED
    except OSError as error:
        status = _fail(str(error))
    except Exception as error:  # noqa: BLE001 - Python's own status for it, 1, means invalid
        click.echo(traceback.format_exc(), err=True)
        status = _fail(f"{type(error).__name__}: {error}")
    sys.exit(status or 0)


def _refuse(line: str) -> int:
    click.echo(f"faultline: {' '.join(line.split())}", err=True)
    return WRONG_REQUEST


def _example(*lines: str) -> str:
    """The end of a verb's help; ``\\b`` keeps click from filling the lines."""
    return "\b\nExample:\n" + "\n".join(f"  {line}" for line in lines)


def _json(command: F) -> F:
    return click.option("--json", "as_json", is_flag=True, help="machine output on stdout")(command)


def _plan_options(command: F) -> F:
    """What ``run`` and ``cluster up`` have in common."""
    for option in reversed(
        (
            click.option("--target", metavar="NAME", help="where: processes (default)"),
            click.option("--brokers", type=int, metavar="N", help="how many brokers (3)"),
            click.option("--mutant", "mutants", multiple=True, metavar="NAME",
                         help="plant this bug in every broker; repeatable"),
            click.option("--set", "settings", multiple=True, metavar="WHOSE.KEY=VALUE",
                         help="a setting of broker, producer or consumer, by Kafka's name"),
        )
    ):  # fmt: skip
        command = option(command)
    return command


@click.group(no_args_is_help=True)
@click.version_option(package_name="faultline", prog_name="faultline")
def faultline() -> None:
    """Break a broker on purpose, record what its clients saw, and say what it did not keep.

    Exit status: 0 valid, 1 invalid, 2 unknown (too little evidence), 64 the request is wrong,
    70 faultline failed.
    """


@faultline.command(
    epilog=_example(
        "faultline run --workload idempotent --nemesis kill,partition --seed 7",
        "faultline run nightly.toml --seed 8 --json",
    )
)
@click.argument("plan_file", required=False, type=click.Path(path_type=Path), metavar="[PLAN.toml]")
@click.option("--workload", metavar="NAME", help="what to ask (idempotent)")
@click.option("--nemesis", metavar="A,B", help="what to break; none, or all that the target offers")
@click.option("--time-limit", "time_limit_s", type=float, metavar="S", help="seconds of work (60)")
@click.option("--rate", "rate_hz", type=float, metavar="HZ", help="writes asked per second")
@click.option("--concurrency", type=int, metavar="N", help="logical clients at a time (5)")
@click.option("--seed", type=int, metavar="N", help="of every random choice (0)")
@click.option("--inline", is_flag=True, help="judge in this process, without Spark")
@click.option("--results", type=click.Path(path_type=Path), metavar="DIR", help="(results)")
@_plan_options
@_json
def run(
    plan_file: Path | None,
    nemesis: str | None,
    settings: tuple[str, ...],
    mutants: tuple[str, ...],
    inline: bool,
    results: Path | None,
    as_json: bool,
    **options: Any,
) -> int:
    """One test: start a cluster, work and break things, judge, tell.

    Options win over the plan file, which has the same names.
    """
    from harness.app import request

    fields: dict[str, Any] = {"nemesis": (request.ALL,)}
    if plan_file is not None:
        fields |= request.from_toml(plan_file)
    if nemesis is not None:
        fields["nemesis"] = request.names_of(nemesis)
    plan = request.resolve(_plan(fields, settings, mutants, options))
    where = results or Path(fields.get("results", "results"))
    return _run(plan, where, inline=inline or bool(fields.get("inline")), as_json=as_json)


@faultline.command(epilog=_example("faultline replay results/20261120T161500Z-idempotent-seed7"))
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@click.option("--inline", is_flag=True, help="judge in this process, without Spark")
@click.option("--results", type=click.Path(path_type=Path), default="results", metavar="DIR")
@_json
def replay(folder: Path, inline: bool, results: Path, as_json: bool) -> int:
    """Run the plan of a run's folder again: same seed, same faults in the same order."""
    from harness.app import request
    from harness.app.replay import plan_of

    return _run(request.resolve(plan_of(folder)), results, inline=inline, as_json=as_json)


@faultline.command(
    epilog=_example(
        "faultline check results/20261120T161500Z-idempotent-seed7",
        "faultline check history.jsonl --inline --set producer.acks=1",
    )
)
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path),
                metavar="DIR|FILE…")  # fmt: skip
@click.option("--inline", is_flag=True, help="judge in this process, without Spark")
@click.option("--set", "settings", multiple=True, metavar="WHOSE.KEY=VALUE",
              help="judge by this setting instead of the plan's")  # fmt: skip
@_json
def check(paths: tuple[Path, ...], inline: bool, settings: tuple[str, ...], as_json: bool) -> int:
    """Judge recorded histories again: runs' folders, or bare history.jsonl or Parquet files.

    A bare history is judged by the strictest contract unless --set says otherwise.
    """
    from checkers.expectations import BadSetting
    from checkers.verdict import Verdict, exit_status, merge
    from harness.app import report, request
    from harness.app.check import describe, examine
    from harness.app.screen import Screen
    from model.history import BadHistory

    wanted = {f"{whose}.{key}": value for whose, key, value in map(request.setting, settings)}
    screen = Screen()
    verdicts: list[Verdict] = []
    for path in paths:
        try:
            with screen.steps() as progress:
                judged = examine(path, inline=inline, settings=wanted, progress=progress)
        except (BadHistory, BadSetting) as error:
            raise Refused(str(error)) from None
        folder = path if path.is_dir() else None
        if folder is not None:
            report.render(folder)
        if not as_json:
            click.echo(describe(judged.verdict, judged.findings, folder))
        verdicts.append(judged.verdict)
    if as_json:
        _print_json(verdicts[0] if len(verdicts) == 1 else verdicts)
    worst = merge(verdict.valid for verdict in verdicts)
    return exit_status(Verdict(valid=worst))


@faultline.group()
def mutants() -> None:
    """Bugs that can be planted in the broker, to see whether they are found."""


@mutants.command("list", epilog=_example("faultline mutants list"))
@_json
def list_(as_json: bool) -> None:
    """Every mutant: its name, where it comes from, what it must be reported as."""
    from harness.cluster.mutants import catalogue

    if as_json:
        _print_json(list(catalogue().values()))
        return
    for mutant in catalogue().values():
        click.echo(f"{mutant.name:24} {mutant.kind:9} {mutant.symptom:16} {mutant.source}")


@mutants.command(epilog=_example("faultline mutants show ack-on-local-append"))
@click.argument("name")
@_json
def show(name: str, as_json: bool) -> None:
    """The story of one mutant."""
    from harness.cluster.mutants import catalogue

    known = catalogue()
    if name not in known:
        raise Refused(f"mutants show: no {name}; there is {', '.join(known)}")
    mutant = known[name]
    if as_json:
        _print_json(mutant)
        return
    click.echo(f"{mutant.name} ({mutant.kind}, {mutant.source})")
    click.echo(f"  replaces  {mutant.of}")
    click.echo(f"  shows as  {mutant.symptom}")
    click.echo(f"  when      {mutant.schedule}")
    click.echo(f"  {mutant.story}")


@faultline.group()
def cluster() -> None:
    """A cluster to play with; it outlives the command."""


@cluster.command(epilog=_example("faultline cluster up --brokers 3 --set broker.num.partitions=6"))
@_plan_options
@_json
def up(
    settings: tuple[str, ...], mutants: tuple[str, ...], as_json: bool, **options: Any
) -> int | None:
    """Start a cluster, and print its bootstrap servers."""
    from harness.app import cluster, request

    plan = _plan({"nemesis": (request.NONE,)}, settings, mutants, options)
    brokers = {"auto.create.topics.enable": "true"} | plan.broker
    plan = request.bare(msgspec.structs.replace(plan, broker=brokers))
    try:
        there = cluster.up(plan)
    except cluster.CannotStart as error:
        return _fail(str(error))
    if as_json:
        _print_json(there)
    else:
        click.echo(there.bootstrap)
    return None


@cluster.command(epilog=_example("faultline cluster status"))
@_json
def status(as_json: bool) -> int:
    """Is a cluster up, and where? Exit status 1 when none is."""
    from harness.app import cluster

    there = cluster.status()
    if as_json:
        _print_json(there)
    elif there is None:
        click.echo("down")
    else:
        click.echo(f"up at {there.bootstrap}, logs and data in {there.folder}")
    return 1 if there is None else 0


@cluster.command(epilog=_example("faultline cluster down"))
@_json
def down(as_json: bool) -> None:
    """End the cluster and remove its data."""
    from harness.app import cluster

    was_up = cluster.down()
    if as_json:
        _print_json({"was_up": was_up})
    else:
        click.echo("down" if was_up else "no cluster was up")


def _plan(
    fields: dict[str, Any],
    settings: Sequence[str],
    mutants: Sequence[str],
    options: dict[str, Any],
) -> Any:
    """A plan of a file's fields and, over them, what the command line says."""
    from harness.app import request

    fields = fields | {name: value for name, value in options.items() if value is not None}
    if mutants:
        fields["mutants"] = tuple(mutants)
    for whose, key, value in map(request.setting, settings):
        fields[whose] = {**fields.get(whose, {}), key: value}
    return request.plan_of(fields)


def _run(plan: Any, results: Path, *, inline: bool, as_json: bool) -> int:
    from checkers.verdict import exit_status
    from harness.app.check import describe
    from harness.app.run import Failed, run
    from harness.app.screen import Screen

    try:
        (verdict, findings), folder = run(plan, results, inline=inline, screen=Screen())
    except Failed as error:
        return _fail(str(error))
    if as_json:
        click.echo(verdict.to_json(), nl=False)
    else:
        click.echo(describe(verdict, findings, folder))
    return exit_status(verdict)


def _fail(line: str) -> int:
    click.echo(f"faultline failed: {line}", err=True)
    return FAILED


def _print_json(value: Any) -> None:
    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2))


if __name__ == "__main__":
    main()
