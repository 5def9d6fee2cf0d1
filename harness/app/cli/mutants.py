"""``faultline mutants``: the bugs that can be planted in the broker."""

from pathlib import Path

import click

from harness.app import options
from harness.app.cli import request
from harness.app.cli.output import fail, print_json


@click.group(cls=options.Group)
def mutants() -> None:
    """List and describe the bugs that can be planted in the broker, and measure their detection."""


@mutants.command("list", epilog=options.example("faultline mutants list"))
@options.json_output
def list_(as_json: bool) -> None:
    """List every mutant: its name, its source, and the anomaly as which it must be reported."""
    from harness.cluster.mutants import catalogue

    if as_json:
        print_json(list(catalogue().values()))
        return
    known = catalogue().values()
    name, symptom = (max(len(getattr(m, field)) for m in known) for field in ("name", "symptom"))
    for mutant in known:
        click.echo(
            f"{mutant.name:{name}}  {mutant.kind:8}  {mutant.symptom:{symptom}}  {mutant.source}"
        )


@mutants.command(epilog=options.example("faultline mutants show ack-on-local-append"))
@click.argument("name")
@options.json_output
def show(name: str, as_json: bool) -> None:
    """Show the story of one mutant."""
    from harness.app import plan_resolution
    from harness.cluster.mutants import catalogue

    known = catalogue()
    plan_resolution.known("mutants show", name, known, plan_resolution.ALL_MUTANTS)
    mutant = known[name]
    if as_json:
        print_json(mutant)
        return
    click.echo(f"{mutant.name} ({mutant.kind}, {mutant.source})")
    click.echo(f"  replaces  {mutant.of}")
    click.echo(f"  shows as  {mutant.symptom}")
    click.echo(f"  when      {mutant.schedule}")
    click.echo(f"  {mutant.story}")


@mutants.command(
    epilog=options.example(
        "faultline mutants score",
        "faultline mutants score hw-uses-proposed-isr --runs 50",
        "faultline mutants score --scripted-only",
        "faultline mutants score dup-window-one --guided --runs 50",
    )
)
@click.argument("names", nargs=-1, metavar="[NAME …]")
@click.option("--runs", type=options.COUNT, metavar="N",
              help="maximum number of seeds to draw for each mutant (200)")  # fmt: skip
@click.option("--enough", type=options.COUNT, metavar="N",
              help="draw no more seeds after N runs that found the mutant (3)")  # fmt: skip
@click.option("--seed", type=options.SEED, default=1, metavar="FIRST", help="the first seed (1)")
@click.option(
    "--scripted-only", is_flag=True, help="draw no seeds; run only each mutant's own schedule"
)
@click.option(
    "--guided", is_flag=True, help="compare searches by chance and guided ones; measure only that"
)
@click.option("--jobs", type=options.JOBS, metavar="N",
              help="number of runs at a time (one for each core)")  # fmt: skip
@click.option("--examples", type=click.Path(path_type=Path), default="examples", metavar="DIR",
              help="the folder that contains mutants/ and plans/ (examples)")  # fmt: skip
@click.option("--output", type=click.Path(path_type=Path), default="docs", metavar="DIR",
              help="the folder of detection-matrix.md and its data (docs)")  # fmt: skip
@click.option("--results", type=click.Path(path_type=Path), default="results", metavar="DIR",
              help="folders of runs with findings are kept in DIR/searches (results)")  # fmt: skip
@options.json_output
def score(
    names: tuple[str, ...],
    runs: int | None,
    enough: int | None,
    seed: int,
    scripted_only: bool,
    guided: bool,
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
    request.pin(["simulated"])
    from harness.app.progress import Screen
    from harness.app.run import Failed
    from harness.app.score import matrix, measure
    from harness.app.search import campaign
    from harness.cluster.mutants import catalogue

    asked = measure.ScoreRequest(
        names=names,
        examples=examples,
        output=output,
        results=results,
        draws=not scripted_only,
        compares=guided,
        seed=seed,
        runs=measure.RUNS if runs is None else runs,
        enough=measure.ENOUGH if enough is None else enough,
        jobs=campaign.cores() if jobs is None else jobs,
    )
    try:
        measured = measure.run(asked, catalogue(), Screen())
    except Failed as error:
        return fail(str(error))
    if as_json:
        print_json(measured)
    else:
        click.echo(matrix.page(measured))
    return 2 if measure.missed(measured) else 0
