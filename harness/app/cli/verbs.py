"""The group of all verbs.

The verbs import what they need inside their functions, so that ``--help`` and a refusal come fast.
"""

import click

from harness.app import leftovers, options
from harness.app.cli.check import check
from harness.app.cli.clean import clean
from harness.app.cli.cluster import cluster
from harness.app.cli.doctor import doctor
from harness.app.cli.gate import gate
from harness.app.cli.lake import lake
from harness.app.cli.mutants import mutants
from harness.app.cli.replay import replay
from harness.app.cli.run import run
from harness.app.cli.search import search
from harness.app.cli.shrink import shrink
from harness.app.cli.soak import soak
from harness.app.cli.sql import sql
from harness.app.cli.tables import tables
from harness.app.cli.trends import trends
from harness.simulation import determinism


@click.group(cls=options.Group, no_args_is_help=True,
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


for _verb in (
    run,
    soak,
    replay,
    check,
    gate,
    search,
    shrink,
    mutants,
    cluster,
    doctor,
    lake,
    sql,
    tables,
    trends,
    clean,
):
    faultline.add_command(_verb)
