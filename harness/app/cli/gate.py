"""``faultline gate``: a suite of tests for CI."""

import dataclasses
from pathlib import Path

import click

from checkers import engine
from harness.app import options
from harness.app.cli import request
from harness.app.cli.output import fail, print_json


@click.command(
    cls=options.Command,
    epilog=options.example(
        "faultline gate examples/suites/quick.toml --junit junit.xml",
        "faultline gate examples/suites/quick.toml --mutant ack-on-local-append",
        "faultline gate examples/suites/quick.toml --system kafka --system apache-kafka:3.9.1",
    ),
)
@click.argument("suite_file", type=click.Path(path_type=Path), metavar="SUITE.toml")
@click.option("--junit", type=click.Path(path_type=Path), metavar="FILE",
              help="also write the JUnit XML to FILE, for CI")  # fmt: skip
@click.option("--results", type=click.Path(path_type=Path), default="results", metavar="DIR",
              help="the gate's folder is created in DIR/gates (results)")  # fmt: skip
@click.option("--keep", type=options.KEEP, metavar="N",
              help="number of folders of valid cases to keep (the suite's number)")  # fmt: skip
@click.option("--inline", is_flag=True, help="judge in this process, without Spark")
@click.option("--mutant", "mutants", multiple=True, metavar="NAME",
              help="plant this bug in every case, to test the gate; may be repeated")  # fmt: skip
@click.option("--system", "systems", multiple=True, metavar="NAME",
              help="run the cases with kafka or with apache-kafka:VERSION in place of the suite's"
                   " systems; may be repeated")  # fmt: skip
@click.option("--seed", type=options.SEED, metavar="N", help="the first seed of every matrix")
@click.option("--require", multiple=True, metavar="NAME",
              help="require this target or system, even if the suite does not; may be repeated",
)  # fmt: skip
@options.lake
@options.spark_engine
@options.json_output
def gate(
    suite_file: Path,
    junit: Path | None,
    results: Path,
    keep: int | None,
    inline: bool,
    mutants: tuple[str, ...],
    systems: tuple[str, ...],
    seed: int | None,
    require: tuple[str, ...],
    lake: Path | None,
    as_json: bool,
) -> int:
    """Run a suite of tests for CI: a matrix of runs, one page, one exit status.

    1 if any case is invalid; else 70 if any failed or the gate was interrupted; else 2 if any is
    unknown or did not fit into the budget; else 0.
    """
    from harness.app.gate import console, outcome
    from harness.app.gate import runner as gate_
    from harness.app.gate import suite as suite_
    from harness.app.lake import add
    from harness.app.progress import Screen
    from harness.app.run import Failed

    asked = suite_.load(suite_file, seed=seed, mutants=mutants, require=require, systems=systems)
    request.pin(case.plan.target for case in asked.cases)
    asked = dataclasses.replace(
        asked,
        keep=asked.keep if keep is None else keep,
        inline=inline or (asked.inline and engine.selected() == engine.LOCAL),
    )
    try:
        ended, folder = gate_.run_gate(
            asked,
            suite_.ready(asked),
            results,
            screen=Screen(),
            junit_to=junit,
            seed=seed,
            mutants=mutants,
            lake=add.opened(lake, asked.lake),
        )
    except Failed as error:
        return fail(str(error))
    if as_json:
        print_json(ended)
    else:
        click.echo(console.table(ended, folder))
    return outcome.exit_status(ended)
