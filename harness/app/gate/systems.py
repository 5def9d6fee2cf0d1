"""Which systems the cases of a suite run: those of the suite, or those of the command line."""

from collections.abc import Iterable, Sequence

from harness.app import catalogue
from harness.app.refused import Refused
from harness.systems import catalogue as systems
from harness.systems.catalogue import OURS


def check(names: Iterable[str], where: str = "") -> None:
    """Raise :class:`Refused` for a name that no system has.

    ``where`` replaces ``--system`` in front of the message.
    """
    seen: set[str] = set()
    for name in names:
        try:
            systems.system(name)
        except systems.UnknownSystem as error:
            text = str(error)
            raise Refused(where + text.removeprefix("--system ") if where else text) from None
        if name in seen:
            raise Refused(f"{where or '--system '}{name}: this system is named more than once")
        seen.add(name)


def selected(
    target: str, of_suite: Sequence[str], asked: Sequence[str]
) -> list[tuple[str, str | None]]:
    """Return the systems that run a case of a target, each with the reason to leave it out.

    Without ``asked``, the systems of the command line, they are those of the suite. A target that
    runs this project's broker only keeps its cases if that is among ``asked``; otherwise its cases
    are left out.
    """
    if not asked:
        return [(system, None) for system in of_suite]
    if catalogue.TARGETS[target].any_system:
        return [(system, None) for system in asked]
    why = f"the target {target} runs {OURS} only, which --system does not name"
    return [(OURS, None if OURS in asked else why)]


def missing(optional: Iterable[str]) -> dict[str, str]:
    """Return why this machine does not have a system, by its name, for those that it lacks."""
    return {
        name: f"the optional system {name} is not available here: {why}"
        for name in optional
        if (why := systems.system(name).missing()) is not None
    }
