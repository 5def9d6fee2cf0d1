"""Options of the command line: numbers with bounds and units, and options that verbs share.

click accepts ``nan`` as a number above 0, and counts that no machine can handle.
"""

import functools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import click
from click.core import ParameterSource

from checkers import engine
from harness.app.refused import Refused

F = TypeVar("F", bound=Callable[..., Any])

COUNT = click.IntRange(min=1, max=10**9)
KEEP_MAX = 10**9
KEEP = click.IntRange(min=0, max=KEEP_MAX)
JOBS = click.IntRange(min=1, max=1024)
SEED_MAX = 2**63 - 1
"""Seeds are written to files as 64-bit numbers."""
SEED = click.IntRange(min=-SEED_MAX, max=SEED_MAX)
MINUTES_MAX = 60.0 * 24 * 366


def given() -> list[str]:
    """Return the options that are on this command line; they override those of a plan file."""
    context = click.get_current_context()
    return [
        name
        for option in context.command.params
        if option.name and context.get_parameter_source(option.name) is ParameterSource.COMMANDLINE
        for name in option.opts
    ]


class Command(click.Command):
    """A command that rejects repeated options, except those that may be repeated.

    click itself takes the last of several, and ignores the others.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; raises :class:`click.UsageError`."""
        _, _, order = self.make_parser(ctx).parse_args(list(args))
        for option in order:
            if isinstance(option, click.Option) and not option.multiple and order.count(option) > 1:
                names = "/".join((*option.opts, *option.secondary_opts))
                raise click.UsageError(f"{names} is given more than once; give it once.", ctx)
        return super().parse_args(ctx, args)


class Group(click.Group):
    """A group whose commands are of type :class:`Command`."""

    command_class = Command
    group_class = type


class Number(click.ParamType[float]):
    """A number with a unit; the error for a bad value names the unit."""

    name = "number"

    def __init__(self, unit: str, example: str, most: float = math.inf) -> None:
        self._unit = unit
        self._example = example
        self._most = most

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the value as a number; the command line gives text, defaults are numbers."""
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not math.isfinite(number) or number <= 0:
            self.fail(
                f"{value!r}: must be a number of {self._unit} above 0, such as {self._example}",
                param,
                ctx,
            )
        if number > self._most:
            self.fail(f"{value!r}: the maximum is {self._most:,.0f} {self._unit}", param, ctx)
        return number


SECONDS = Number("seconds", "60", 7 * 24 * 3600)
MINUTES = Number("minutes", "10", MINUTES_MAX)
HOURS = Number("hours", "24", 7 * 24)
RATE = Number("writes per second", "500", 1_000_000)


def example(*lines: str) -> str:
    """Return the end of a verb's help; ``\\b`` keeps click from rewrapping the lines."""
    return "\b\nExample:\n" + "\n".join(f"  {line}" for line in lines)


def json_output(command: F) -> F:
    """Add the option ``--json``."""
    return click.option(
        "--json", "as_json", is_flag=True, help="print the result as JSON on standard output"
    )(command)


def strict(command: F) -> F:
    """Add the option that judges by the settings that promise most."""
    help_text = "judge as if acks=all, idempotence and clean elections were configured"
    return click.option("--strict", is_flag=True, help=help_text)(command)


def judged_by(command: F) -> F:
    """Add the option that chooses between judging in this process and by Spark."""
    help_text = "judge in this process (the default in simulation) or with Spark"
    return click.option("--inline/--spark", default=None, help=help_text)(command)


def spark_engine(command: F) -> F:
    """Add the options that choose the Spark that judges, and select it before the command runs."""

    @functools.wraps(command)
    def with_engine(*args: Any, **rest: Any) -> Any:
        master, remote, conf = (rest.pop(each) for each in ("spark_master", "spark_remote", "conf"))
        if master is None and remote is None and not conf:
            return command(*args, **rest)
        if rest.get("inline"):
            named = "--spark-master, --spark-remote and --conf"
            raise Refused(f"--inline: it judges without Spark; leave out {named}")
        try:
            engine.select(engine.Engine.of(master, conf, remote))
        except engine.BadEngine as error:
            raise Refused(str(error)) from None
        by_spark = {"inline": False, "spark": True}
        rest |= {name: value for name, value in by_spark.items() if name in rest}
        return command(*args, **rest)

    settings = click.option("--conf", multiple=True, metavar="spark.KEY=VALUE",
                            help="a setting of Spark; may be repeated")  # fmt: skip
    master = click.option("--spark-master", metavar="URL",
                          help="judge on this cluster, such as spark://HOST:7077 (all cores of this"
                               " machine)")  # fmt: skip
    remote = click.option("--spark-remote", metavar="URL",
                          help="judge on this server of Spark Connect, sc://HOST:PORT")  # fmt: skip
    return cast(F, master(remote(settings(with_engine))))


def lake(command: F) -> F:
    """Add the option that names a lake."""
    help_text = "folder of the lake (the environment variable FAULTLINE_LAKE)"
    return click.option("--lake", type=click.Path(path_type=Path), metavar="DIR", help=help_text)(
        command
    )


def cluster_file(command: F) -> F:
    """Add the options of the target ``external``."""
    yes = click.option("--yes-break-it", is_flag=True,
                       help="confirm that faults may break this cluster")  # fmt: skip
    named = click.option("--cluster", type=click.Path(path_type=Path), metavar="FILE",
                         help="file that describes your cluster (--target external)")  # fmt: skip
    return named(yes(command))


def plan_options(command: F) -> F:
    """Add the options that ``run`` and ``cluster up`` have in common."""
    for option in reversed(
        (
            click.option("--target", metavar="NAME",
                         help="where the cluster runs: processes (default), containers, simulated,"
                         " external"),
            click.option("--system", metavar="NAME",
                         help="what is tested: kafka (default), apache-kafka:VERSION, zookeeper or"
                         " apache-zookeeper:VERSION"),
            click.option("--kafka-home", type=click.Path(path_type=Path), metavar="DIR",
                         help="unpacked distribution of Apache Kafka to test"),
            click.option("--brokers", type=int, metavar="N", help="number of brokers (3)"),
            click.option("--zookeepers", type=int, metavar="N",
                         help="number of ZooKeeper servers (1; 3 where ZooKeeper is tested)"),
            click.option("--mutant", "mutants", multiple=True, metavar="NAME",
                         help="plant this bug in every broker; may be repeated"),
            click.option("--set", "settings", multiple=True, metavar="WHOSE.KEY=VALUE",
                         help="set KEY (Kafka's name) of broker, producer or consumer, or an"
                         " option of the plan (options.KEY)"),
        )
    ):  # fmt: skip
        command = option(command)
    return command
