"""The command line: verbs, options and exit statuses; the work itself is done by other modules.

The verbs import what they need inside their functions, so that ``--help`` and a refusal come fast.
"""

import dataclasses
import json
import sys
import tomllib
import traceback
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from harness.app import exits

WRONG_REQUEST = 64
UNAVAILABLE = 69
FAILED = exits.FAILED

if exits.is_program():
    exits.guard()  # before anything that can fail
try:
    import click
    import msgspec

    from harness.app import leftovers, private, signals, terminal
    from harness.app import options as options_
    from harness.app.refused import Refused
    from harness.simulation import determinism
except KeyboardInterrupt:  # the imports may take seconds on a busy machine
    print("faultline: interrupted", file=sys.stderr)
    sys.exit(FAILED)

F = TypeVar("F", bound=Callable[..., Any])


@dataclasses.dataclass(frozen=True)
class Program:
    """How the command line was started."""

    is_whole_process: bool
    """True if this process runs nothing else, so that it may be replaced by a pinned process."""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a verb and exit: 0 valid, 1 invalid, 2 unknown, 64 a wrong request, 70 faultline failed.

    A wrong request is reported in one line.
    """
    with terminal.filtered(), private.writing():
        status = _status_of(arguments)
    exits.leave(status)


def _status_of(arguments: Sequence[str] | None) -> int:
    """Run a verb and return its exit status."""
    try:
        if determinism.is_pinned():
            determinism.install()  # before anything binds a clock
        with signals.as_interrupts():
            status = faultline.main(
                args=None if arguments is None else list(arguments),
                prog_name="faultline",
                standalone_mode=False,
                obj=Program(is_whole_process=arguments is None),
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
    except MemoryError:
        status = _fail("there is not enough memory; ulimit -v shows whether this shell has a limit")
    except OSError as error:
        status = _fail(str(error))
    except ImportError as error:  # numpy's message has many lines, and the reason in its last one
        reason = str(error).strip().splitlines() or ["unknown"]
        status = _fail(f"a library cannot be loaded: {reason[-1]}")
    except SystemExit as error:  # a library called sys.exit with a status of its own
        status = 0 if not error.code else _fail(f"a library called sys.exit({error.code!r})")
    except Exception as error:  # noqa: BLE001 - Python's own status for it, 1, means invalid
        click.echo(traceback.format_exc(), err=True)
        status = _fail(f"{type(error).__name__}: {error}")
    return status or 0


def _refuse(line: str) -> int:
    """Print one line without control characters, whatever the request was."""
    click.echo(f"faultline: {terminal.sentence(' '.join(line.split()))}", err=True)
    return WRONG_REQUEST


def _pin(targets: Iterable[object]) -> None:
    """Replace this process with a pinned one if a target is simulated."""
    program = click.get_current_context().obj
    if "simulated" in targets and program.is_whole_process:
        try:
            determinism.exec_pinned()
        except determinism.PinError as error:
            raise Refused(f"--target simulated: {error}") from None


def _target_in(path: Path | None) -> object:
    """Return the target in a plan file or a run's plan; ``None`` if it cannot be read."""
    try:
        text = path.read_text() if path is not None and path.is_file() else ""
        document = json.loads(text) if path and path.suffix == ".json" else tomllib.loads(text)
        return document.get("target")
    except (OSError, ValueError, AttributeError, RecursionError):
        return None  # reported later, when the whole file is read


def _example(*lines: str) -> str:
    """Return the end of a verb's help; ``\\b`` keeps click from rewrapping the lines."""
    return "\b\nExample:\n" + "\n".join(f"  {line}" for line in lines)


def _json(command: F) -> F:
    return click.option(
        "--json", "as_json", is_flag=True, help="print the result as JSON on standard output"
    )(command)


def _judged_by(command: F) -> F:
    told = "judge in this process (the default in simulation) or with Spark"
    return click.option("--inline/--spark", default=None, help=told)(command)


def _plan_options(command: F) -> F:
    """Add the options that ``run`` and ``cluster up`` have in common."""
    for option in reversed(
        (
            click.option("--target", metavar="NAME",
                         help="where the cluster runs: processes (default), containers, simulated"),
            click.option("--brokers", type=int, metavar="N", help="number of brokers (3)"),
            click.option("--mutant", "mutants", multiple=True, metavar="NAME",
                         help="plant this bug in every broker; may be repeated"),
            click.option("--set", "settings", multiple=True, metavar="WHOSE.KEY=VALUE",
                         help="set KEY (Kafka's name) of broker, producer or consumer"),
        )
    ):  # fmt: skip
        command = option(command)
    return command


@click.group(cls=options_.Group, no_args_is_help=True,
             context_settings={"help_option_names": ["-h", "--help"]})  # fmt: skip
@click.version_option(package_name="faultline", prog_name="faultline")
def faultline() -> None:
    """Inject faults into a broker, record what clients observe, report which promises it broke.

    Exit status: 0 valid, 1 invalid, 2 unknown (too little evidence), 64 the request is wrong, 70
    faultline failed.
    """
    verb = click.get_current_context().invoked_subcommand
    if verb != "clean" and not determinism.is_pinned():  # the process that it replaced has done so
        leftovers.remove_if_any(lambda line: click.echo(f"faultline: {line}", err=True))


@faultline.command(
    epilog=_example(
        "faultline run --workload idempotent --nemesis kill,partition --seed 7",
        "faultline run nightly.toml --seed 8 --json",
    )
)
@click.argument("plan_file", required=False, type=click.Path(path_type=Path), metavar="[PLAN.toml]")
@click.option(
    "--workload",
    metavar="NAME",
    help="the operations of the clients (idempotent); README.md lists all",
)
@click.option(
    "--nemesis",
    metavar="A,B",
    help="kinds of faults to inject; none, or all that the target offers (all)",
)
@click.option(
    "--time-limit",
    "time_limit_s",
    type=options_.SECONDS,
    metavar="S",
    help="seconds that the workload runs (60)",
)
@click.option(
    "--rate",
    "rate_hz",
    type=options_.RATE,
    metavar="HZ",
    help="writes per second (the workload's own rate)",
)
@click.option(
    "--concurrency", type=int, metavar="N", help="number of logical clients at a time (5)"
)
@click.option("--seed", type=options_.SEED, metavar="N", help="seed of all random choices (0)")
@_judged_by
@click.option(
    "--results",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="the run's folder is created in DIR (results)",
)
@_plan_options
@_json
def run(
    plan_file: Path | None,
    nemesis: str | None,
    settings: tuple[str, ...],
    mutants: tuple[str, ...],
    inline: bool | None,
    results: Path | None,
    as_json: bool,
    **options: Any,
) -> int:
    """Run one test: start a cluster, run a workload under faults, judge the history.

    Options override the plan file, which uses the same names.
    """
    _pin([options["target"] or _target_in(plan_file)])
    from harness.app import plan_resolution, toml_lines

    fields: dict[str, Any] = {"nemesis": (plan_resolution.ALL,)}
    if plan_file is not None:
        fields |= plan_resolution.from_toml(plan_file)
    if nemesis is not None:
        fields["nemesis"] = plan_resolution.names_of(nemesis)
    with toml_lines.about(plan_file, options_.given()):
        plan = plan_resolution.resolve(_plan(fields, settings, mutants, options))
    for line in plan_resolution.missing_faults(plan, fields["nemesis"]):
        click.echo(line, err=True)
    where = results or Path(fields.get("results", "results"))
    return _run(
        plan, where, inline=fields.get("inline") if inline is None else inline, as_json=as_json
    )


@faultline.command(
    epilog=_example(
        "faultline replay results/20261120T161500Z-idempotent-seed7",
        "faultline replay results/searches/20261120T204421Z-idempotent-seed1/seed3"
        " --target processes",
    )
)
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@click.option("--target", metavar="NAME", help="run on this target instead of the recorded one")
@click.option("--seeds", type=click.IntRange(min=1), metavar="N",
              help="seeds to try when a red run of another target is simulated (10)")  # fmt: skip
@click.option("--jobs", type=click.IntRange(min=1), metavar="N",
              help="number of these simulations at a time (one for each core)")  # fmt: skip
@_judged_by
@click.option("--results", type=click.Path(path_type=Path), default="results", metavar="DIR",
              help="the new run's folder is created in DIR (results)")  # fmt: skip
@_json
def replay(
    folder: Path,
    target: str | None,
    seeds: int | None,
    jobs: int | None,
    inline: bool | None,
    results: Path,
    as_json: bool,
) -> int:
    """Run the plan of a run's folder again: same seed, same faults in the same order.

    With --target simulated a red run on another target is simulated, with more seeds until the same
    anomaly shows: exit status 1 if an anomaly shows, 0 if none does, 2 if that is unknown.
    """
    _pin([target or _target_in(folder / "plan.json")])
    from harness.app import plan_resolution, reproduce
    from harness.app import replay as replay_

    plan = replay_.plan_of(folder)
    if target == "simulated" != plan.target and reproduce.recorded_anomalies(folder):
        return _reproduce(folder, results, seeds, jobs, inline=inline, as_json=as_json)
    if seeds is not None or jobs is not None:
        raise Refused(
            "--seeds and --jobs apply only to --target simulated, for an INVALID run of another"
            " target"
        )
    calm = replay_.without_faults(plan)
    plan = calm or plan
    if target is not None:
        plan = replay_.elsewhere(plan, target)
    elif (changed := replay_.changed(plan)) is not None:
        click.echo(changed, err=True)
    resolved = plan_resolution.resolve(plan)
    if calm is not None:
        click.echo("this run has no scheduled faults, so it is repeated without faults", err=True)
    return _run(resolved, results, inline=inline, as_json=as_json)


@faultline.command(
    epilog=_example(
        "faultline check results/20261120T161500Z-idempotent-seed7",
        "faultline check history.jsonl --inline --set producer.acks=1",
        "faultline check jepsen/store/latest/history.edn --inline",
    )
)
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path),
                metavar="DIR|FILE…")  # fmt: skip
@click.option("--inline", is_flag=True, help="judge in this process, without Spark")
@click.option("--set", "settings", multiple=True, metavar="WHOSE.KEY=VALUE",
              help="judge by this setting instead of the plan's")  # fmt: skip
@click.option("--results", type=click.Path(path_type=Path), default="results", metavar="DIR",
              help="judgements of read-only folders go to DIR/judgements (results)")  # fmt: skip
@_json
def check(
    paths: tuple[Path, ...],
    inline: bool,
    settings: tuple[str, ...],
    results: Path,
    as_json: bool,
) -> int:
    """Judge recorded histories again: folders of runs, or bare files.

    A bare file is a history.jsonl, a Parquet file, or the history.edn of a run of Jepsen's Kafka
    workload. A bare history is judged by the strictest contract unless --set says otherwise. A
    judgement under other settings than the plan's never replaces the verdict of a run: it is stored
    separately.
    """
    from checkers.verdict import Verdict, exit_status, merge
    from harness.app import check_many, plan_resolution
    from harness.app.progress import Screen

    wanted = {
        f"{whose}.{key}": value for whose, key, value in plan_resolution.settings_of(settings)
    }
    say = (lambda line: click.echo(line, err=True)) if as_json else click.echo
    verdicts = check_many.judge_all(
        paths, check_many.Request(inline, wanted, results, not as_json), Screen(), say
    )
    if as_json:
        _print_json(verdicts[0] if len(verdicts) == 1 else verdicts)
    worst = merge(verdict.valid for verdict in verdicts)
    return exit_status(Verdict(valid=worst))


@faultline.command(
    epilog=_example(
        "faultline gate examples/suites/quick.toml --junit junit.xml",
        "faultline gate examples/suites/quick.toml --mutant ack-on-local-append",
    )
)
@click.argument("suite_file", type=click.Path(path_type=Path), metavar="SUITE.toml")
@click.option("--junit", type=click.Path(path_type=Path), metavar="FILE",
              help="also write the JUnit XML to FILE, for CI")  # fmt: skip
@click.option("--results", type=click.Path(path_type=Path), default="results", metavar="DIR",
              help="the gate's folder is created in DIR/gates (results)")  # fmt: skip
@click.option("--keep", type=options_.KEEP, metavar="N",
              help="number of folders of valid cases to keep (the suite's number)")  # fmt: skip
@click.option("--inline", is_flag=True, help="judge in this process, without Spark")
@click.option("--mutant", "mutants", multiple=True, metavar="NAME",
              help="plant this bug in every case, to test the gate; may be repeated")  # fmt: skip
@click.option("--seed", type=options_.SEED, metavar="N", help="the first seed of every matrix")
@click.option("--require", multiple=True, metavar="TARGET",
              help="require this target, even if the suite does not; may be repeated")  # fmt: skip
@_json
def gate(
    suite_file: Path,
    junit: Path | None,
    results: Path,
    keep: int | None,
    inline: bool,
    mutants: tuple[str, ...],
    seed: int | None,
    require: tuple[str, ...],
    as_json: bool,
) -> int:
    """Run a suite of tests for CI: a matrix of runs, one page, one exit status.

    1 if any case is invalid; else 70 if any failed or the gate was interrupted; else 2 if any is
    unknown or did not fit into the budget; else 0.
    """
    from harness.app.gate import console, outcome
    from harness.app.gate import runner as gate_
    from harness.app.gate import suite as suite_
    from harness.app.progress import Screen
    from harness.app.run import Failed

    asked = suite_.load(suite_file, seed=seed, mutants=mutants, require=require)
    _pin(case.plan.target for case in asked.cases)
    asked = dataclasses.replace(
        asked,
        keep=asked.keep if keep is None else keep,
        inline=asked.inline or inline,
    )
    try:
        ended, folder = gate_.carry_out(
            asked,
            suite_.ready(asked),
            results,
            screen=Screen(),
            junit_to=junit,
            seed=seed,
            mutants=mutants,
        )
    except Failed as error:
        return _fail(str(error))
    if as_json:
        _print_json(ended)
    else:
        click.echo(console.table(ended, folder))
    return outcome.exit_status(ended)


@faultline.command(
    epilog=_example(
        "faultline search --runs 1000",
        "faultline search --minutes 60 --keep-going --nemesis kill,partition --seed 5000",
        "faultline search held.toml --mutant ack-on-local-append",
    )
)
@click.argument("plan_file", required=False, type=click.Path(path_type=Path), metavar="[PLAN.toml]")
@click.option("--runs", type=options_.COUNT, metavar="N",
              help="maximum number of runs (100; with --minutes, no maximum)")  # fmt: skip
@click.option("--minutes", type=options_.MINUTES, metavar="M",
              help="start no run after M minutes")  # fmt: skip
@click.option("--jobs", type=options_.JOBS, metavar="N",
              help="number of runs at a time (one for each core)")  # fmt: skip
@click.option("--seed", type=options_.SEED, default=1, metavar="FIRST", help="the first seed (1)")
@click.option("--workload", metavar="NAME", help="the workload of all runs")
@click.option("--nemesis", metavar="A,B", help="the kinds of faults of all runs")
@click.option("--mutant", "mutants", multiple=True, metavar="NAME",
              help="plant this bug in every broker; may be repeated")  # fmt: skip
@click.option("--set", "settings", multiple=True, metavar="WHOSE.KEY=VALUE",
              help="set KEY (Kafka's name) in all runs")  # fmt: skip
@click.option("--results", type=click.Path(path_type=Path), default="results", metavar="DIR",
              help="the search's folder is created in DIR/searches (results)")  # fmt: skip
@click.option("--keep", type=options_.KEEP, default=0, metavar="N",
              help="number of folders of valid runs to keep (0)")  # fmt: skip
@click.option("--keep-going", is_flag=True, help="do not stop at the first anomaly")
@click.option("--spark", is_flag=True,
              help="at the end, judge all histories again in one Spark job")  # fmt: skip
@_json
def search(
    plan_file: Path | None,
    runs: int | None,
    minutes: float | None,
    jobs: int | None,
    seed: int,
    workload: str | None,
    nemesis: str | None,
    mutants: tuple[str, ...],
    settings: tuple[str, ...],
    results: Path,
    keep: int,
    keep_going: bool,
    spark: bool,
    as_json: bool,
) -> int:
    """Run many simulations, each with a plan drawn from its own seed.

    Only what neither an option nor the plan file sets is drawn. Exit status 1 if any run is
    invalid; else 70 if any failed, Spark judged any differently, or the search was interrupted;
    else 2 if any is unknown.
    """
    _pin(["simulated"])
    from harness.app import command_line, plan_resolution
    from harness.app.progress import Screen
    from harness.app.run import Failed
    from harness.app.search import campaign, outcome

    fields: dict[str, Any] = {} if plan_file is None else plan_resolution.from_toml(plan_file)
    if workload is not None:
        fields["workload"] = workload
    if nemesis is not None:
        fields["nemesis"] = plan_resolution.names_of(nemesis)
    if mutants:
        fields["mutants"] = mutants
    for whose, key, value in plan_resolution.settings_of(settings):
        fields[whose] = {**fields.get(whose, {}), key: value}
    asked = campaign.Asked(
        pinned=fields,
        first=seed,
        runs=campaign.RUNS if runs is None and minutes is None else runs,
        minutes=minutes,
        jobs=campaign.cores() if jobs is None else jobs,
        keep=keep,
        enough=None if keep_going else 1,
        spark=spark,
    )
    try:
        told = campaign.carry_out(asked, results, Screen())
    except Failed as error:
        return _fail(str(error))
    if as_json:
        _print_json(told)
    else:
        click.echo(outcome.describe(told, command_line.command("replay")))
    return outcome.exit_status(told)


@faultline.command(
    epilog=_example(
        "faultline shrink results/searches/20261120T204421Z-idempotent-seed1/seed3",
        "faultline shrink results/20261120T161500Z-idempotent-seed7 --anomaly duplicate",
    )
)
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@click.option("--anomaly", metavar="ID",
              help="the anomaly that smaller plans must show (the most serious one)")  # fmt: skip
@click.option("--minutes", type=options_.MINUTES, metavar="M",
              help="start no trial after M minutes (10)")  # fmt: skip
@click.option("--jobs", type=options_.JOBS, metavar="N",
              help="number of trials at a time (one for each core)")  # fmt: skip
@click.option("--results", type=click.Path(path_type=Path), default="results", metavar="DIR",
              help="the new folder is created in DIR/shrunk (results)")  # fmt: skip
@_json
def shrink(
    folder: Path,
    anomaly: str | None,
    minutes: float | None,
    jobs: int | None,
    results: Path,
    as_json: bool,
) -> int:
    """Find the smallest plan that still shows a simulated run's anomaly, and write a test case.

    Exit status 1: the smaller plan shows the anomaly, as the run did; 64 if the run has none to
    keep.
    """
    _pin(["simulated"])
    from harness.app import command_line
    from harness.app.progress import Screen
    from harness.app.run import Failed
    from harness.app.search import campaign
    from harness.app.shrink import shrink as shrink_

    try:
        shrunk = shrink_.carry_out(
            folder,
            results,
            screen=Screen(),
            anomaly=anomaly,
            jobs=campaign.cores() if jobs is None else jobs,
            minutes=shrink_.MINUTES if minutes is None else minutes,
        )
    except Failed as error:
        return _fail(str(error))
    if as_json:
        _print_json(shrunk)
    else:
        click.echo(shrink_.describe(shrunk, command_line.command("replay")))
    return 1


@faultline.group()
def mutants() -> None:
    """List and describe the bugs that can be planted in the broker, and measure their detection."""


@mutants.command("list", epilog=_example("faultline mutants list"))
@_json
def list_(as_json: bool) -> None:
    """List every mutant: its name, its source, and the anomaly as which it must be reported."""
    from harness.cluster.mutants import catalogue

    if as_json:
        _print_json(list(catalogue().values()))
        return
    known = catalogue().values()
    name, symptom = (max(len(getattr(m, field)) for m in known) for field in ("name", "symptom"))
    for mutant in known:
        click.echo(
            f"{mutant.name:{name}}  {mutant.kind:8}  {mutant.symptom:{symptom}}  {mutant.source}"
        )


@mutants.command(epilog=_example("faultline mutants show ack-on-local-append"))
@click.argument("name")
@_json
def show(name: str, as_json: bool) -> None:
    """Show the story of one mutant."""
    from harness.app import plan_resolution
    from harness.cluster.mutants import catalogue

    known = catalogue()
    plan_resolution.known("mutants show", name, known, plan_resolution.ALL_MUTANTS)
    mutant = known[name]
    if as_json:
        _print_json(mutant)
        return
    click.echo(f"{mutant.name} ({mutant.kind}, {mutant.source})")
    click.echo(f"  replaces  {mutant.of}")
    click.echo(f"  shows as  {mutant.symptom}")
    click.echo(f"  when      {mutant.schedule}")
    click.echo(f"  {mutant.story}")


@mutants.command(
    epilog=_example(
        "faultline mutants score",
        "faultline mutants score hw-uses-proposed-isr --runs 50",
        "faultline mutants score --scripted-only",
    )
)
@click.argument("names", nargs=-1, metavar="[NAME …]")
@click.option("--runs", type=options_.COUNT, metavar="N",
              help="maximum number of seeds to draw for each mutant (200)")  # fmt: skip
@click.option("--enough", type=options_.COUNT, metavar="N",
              help="draw no more seeds after N runs that found the mutant (3)")  # fmt: skip
@click.option("--seed", type=options_.SEED, default=1, metavar="FIRST", help="the first seed (1)")
@click.option(
    "--scripted-only", is_flag=True, help="draw no seeds; run only each mutant's own schedule"
)
@click.option("--jobs", type=options_.JOBS, metavar="N",
              help="number of runs at a time (one for each core)")  # fmt: skip
@click.option("--examples", type=click.Path(path_type=Path), default="examples", metavar="DIR",
              help="the folder that contains mutants/ and plans/ (examples)")  # fmt: skip
@click.option("--output", type=click.Path(path_type=Path), default="docs", metavar="DIR",
              help="the folder of detection-matrix.md and its data (docs)")  # fmt: skip
@click.option("--results", type=click.Path(path_type=Path), default="results", metavar="DIR",
              help="folders of runs with findings are kept in DIR/searches (results)")  # fmt: skip
@_json
def score(
    names: tuple[str, ...],
    runs: int | None,
    enough: int | None,
    seed: int,
    scripted_only: bool,
    jobs: int | None,
    examples: Path,
    output: Path,
    results: Path,
    as_json: bool,
) -> int:
    """Measure how reliably each mutant is found: by its own schedule, and by drawn seeds.

    The detection matrix is updated row by row; a row that exists is measured again only by its
    NAME. Exit status 2 if a schedule does not show its mutant.
    """
    _pin(["simulated"])
    from harness.app.progress import Screen
    from harness.app.run import Failed
    from harness.app.score import matrix, measure
    from harness.app.search import campaign
    from harness.cluster.mutants import catalogue

    asked = measure.Asked(
        names=names,
        examples=examples,
        output=output,
        results=results,
        draws=not scripted_only,
        seed=seed,
        runs=measure.RUNS if runs is None else runs,
        enough=measure.ENOUGH if enough is None else enough,
        jobs=campaign.cores() if jobs is None else jobs,
    )
    try:
        measured = measure.carry_out(asked, catalogue(), Screen())
    except Failed as error:
        return _fail(str(error))
    if as_json:
        _print_json(measured)
    else:
        click.echo(matrix.page(measured))
    return 2 if measure.missed(measured) else 0


@faultline.group()
def cluster() -> None:
    """A cluster for experiments; it keeps running after the command has ended."""


@cluster.command(
    epilog=_example(
        "faultline cluster up --brokers 3 --set broker.num.partitions=6",
        "faultline cluster up --port 9092",
    )
)
@_plan_options
@click.option("--port", type=int, metavar="N",
              help="port of broker 1; broker 2 has N+1, and so on (any free ports)")  # fmt: skip
@_json
def up(
    settings: tuple[str, ...],
    mutants: tuple[str, ...],
    port: int | None,
    as_json: bool,
    **options: Any,
) -> int | None:
    """Start a cluster, and print its bootstrap servers."""
    from harness.app import cluster, plan_resolution

    plan = _plan({"nemesis": (plan_resolution.NONE,)}, settings, mutants, options)
    brokers = {"auto.create.topics.enable": "true"} | plan.broker
    plan = plan_resolution.bare(msgspec.structs.replace(plan, broker=brokers))
    try:
        there = cluster.up(plan, lambda line: click.echo(line, err=True), port)
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
    """Is a cluster up, and where? Exit status 69 if none is."""
    from harness.app import cluster

    there = cluster.status()
    if as_json:
        _print_json(there)
    elif there is None:
        click.echo("down")
    else:
        click.echo(f"up at {there.bootstrap}, logs and data in {there.folder}")
    return UNAVAILABLE if there is None else 0


@cluster.command(epilog=_example("faultline cluster down"))
@_json
def down(as_json: bool) -> int | None:
    """Stop the cluster and remove its data, even if its keeper was killed or still starts it."""
    from harness.app import cluster

    try:
        was_up = cluster.down()
    except cluster.CannotStart as error:
        return _fail(str(error))
    if as_json:
        _print_json({"was_up": was_up})
    else:
        click.echo("down" if was_up else "no cluster was up")
    return None


@faultline.command(epilog=_example("faultline clean", "faultline clean --results nightly"))
@click.option("--results", type=click.Path(path_type=Path), default="results", metavar="DIR",
              help="also remove the temporary folders of runs in DIR (results)")  # fmt: skip
@_json
def clean(results: Path, as_json: bool) -> None:
    """Remove what killed commands left behind.

    This includes their processes, containers, networks, volumes and temporary folders, and a
    cluster whose keeper process is gone. What belongs to a command that still runs stays; so do
    results.
    """
    from harness.app import clean as clean_

    removed = clean_.clean(results)
    if as_json:
        _print_json(removed)
    else:
        lines = leftovers.sentences(removed) or ["there was nothing to remove"]
        click.echo("\n".join(lines))


def _plan(
    fields: dict[str, Any],
    settings: Sequence[str],
    mutants: Sequence[str],
    options: dict[str, Any],
) -> Any:
    """Return the plan with a file's fields, overridden by the command line."""
    from harness.app import plan_resolution

    fields = fields | {name: value for name, value in options.items() if value is not None}
    if mutants:
        fields["mutants"] = tuple(mutants)
    for whose, key, value in plan_resolution.settings_of(settings):
        fields[whose] = {**fields.get(whose, {}), key: value}
    plan = plan_resolution.plan_of(fields)
    plan_resolution.check_targets(plan)
    return plan


def _run(plan: Any, results: Path, *, inline: bool | None, as_json: bool) -> int:
    """Run the plan, print the verdict and return the exit status.

    ``inline=None`` chooses by target: a simulated run is small, and would be over before a Spark
    session has started.
    """
    from checkers.verdict import exit_status
    from harness.app import catalogue
    from harness.app.check import describe
    from harness.app.progress import Screen
    from harness.app.run import Failed, run

    if inline is None:
        inline = catalogue.TARGETS[plan.target].is_virtual
    try:
        (verdict, findings), folder = run(plan, results, inline=inline, screen=Screen())
    except Failed as error:
        return _fail(str(error))
    if as_json:
        click.echo(terminal.escaped(verdict.to_json().decode()), nl=False)
    else:
        click.echo(describe(verdict, findings, folder))
    return exit_status(verdict)


def _reproduce(
    folder: Path,
    results: Path,
    seeds: int | None,
    jobs: int | None,
    *,
    inline: bool | None,
    as_json: bool,
) -> int:
    """Test whether a simulation shows the anomaly of a run on real processes."""
    from harness.app import command_line, reproduce
    from harness.app.progress import Screen
    from harness.app.run import Failed
    from harness.app.search import campaign

    if inline is False:
        raise Refused("--spark: simulations of a recorded run are always judged in this process")
    try:
        told = reproduce.carry_out(
            folder,
            results,
            screen=Screen(),
            seeds=reproduce.SEEDS if seeds is None else seeds,
            jobs=campaign.cores() if jobs is None else jobs,
        )
    except Failed as error:
        return _fail(str(error))
    if as_json:
        _print_json(told)
    else:
        click.echo(
            reproduce.describe(told, command_line.command("replay"), command_line.command("shrink"))
        )
    return reproduce.exit_status(told)


def _fail(line: str) -> int:
    click.echo(f"faultline failed: {terminal.sentence(line)}", err=True)
    return FAILED


def _print_json(value: Any) -> None:
    click.echo(terminal.json_text(value))


if __name__ == "__main__":
    main()
