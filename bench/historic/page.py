"""The page ``docs/historic.md``: the stories, their releases, and how often each was convicted."""

from collections.abc import Mapping, Sequence

from bench.historic.results import Results, Run
from bench.historic.runner import arguments
from bench.historic.stories import Place, Story

PAGE = "historic.md"

_HEAD = (
    "# Historic bugs",
    "",
    "Bugs of released versions of Apache Kafka. Each has a plan in `examples/historic/` that runs",
    "unchanged on the release that has the bug, on a release that has not, and on this project's",
    "broker with and without the same bug planted, unless its protocol has the bug.",
    "`make historic` (`RUNS=5`) does the runs that are missing in `historic.json`, and writes this",
    "page from it. A run is never repeated to get another verdict.",
    "",
    "*convicted* counts the runs that ended `INVALID` with the story's anomaly, *acquitted* those",
    "that ended `VALID`. Numbers of findings and records are the least and the most of a run.",
    "",
)


def page(stories: Sequence[Story], results: Results, digests: Mapping[str, str]) -> str:
    """Return the page; ``digests`` identifies each story's plan file as it is now."""
    runs = {
        story: {place: results.of(story, place, digests[story.name]) for place in story.places}
        for story in stories
    }
    lines = [*_HEAD, *_overview(runs)]
    for story, by_place in runs.items():
        lines += ["", *_story(story, by_place)]
    return "\n".join([*lines, ""])


_Runs = Mapping[Place, Mapping[int, Run]]


def _overview(runs: Mapping[Story, _Runs]) -> list[str]:
    return [
        "| bug | JIRA | KIP | plan | has it | convicted | has it not | acquitted |",
        "|---|---|---|---|---|---|---|---|",
        *(_row(story, by_place) for story, by_place in runs.items()),
    ]


def _row(story: Story, runs: _Runs) -> str:
    old, new, mutant, *ours = story.places
    planted = " + ".join(f"`{name}`" for name in story.mutants) or "our broker"
    cells = (
        f"[{story.title}](#{story.name})",
        ", ".join(story.jira),
        story.kip or "",
        f"[{story.name}](../{story.plan})",
        f"{story.old}; {planted}",
        f"{_ended(story, old, runs)}; {_ended(story, mutant, runs)}",
        "; ".join((story.new, *("our broker" for _ in ours))),
        "; ".join(_ended(story, place, runs) for place in (new, *ours)),
    )
    return f"| {' | '.join(cells)} |"


def _ended(story: Story, place: Place, runs: _Runs) -> str:
    """Return how many runs of a place ended as they must."""
    found = runs[place].values()
    if not found:
        return "not measured"
    good = sum(run.is_as_expected(story, place) for run in found)
    text = f"{good} of {len(found)}"
    return text if good == len(found) else f"**{text}**"


def _story(story: Story, runs: _Runs) -> list[str]:
    jira = [f"[{name}](https://issues.apache.org/jira/browse/{name})" for name in story.jira]
    sources = ", ".join([*jira, *([story.kip] if story.kip else [])])
    lines = [f"## {story.name}", "", f"**{story.title}** ({sources}). {story.text}", ""]
    lines += ["```console"]
    lines += [f"$ faultline {' '.join(arguments(story, place, 1))}" for place in story.places]
    lines += ["```", ""]
    lines += [
        "| system | as expected | illegal findings | acknowledged | faults proved | seconds |",
        "|---|---|---|---|---|---|",
    ]
    return lines + [_line(story, place, runs) for place in story.places]


def _line(story: Story, place: Place, runs: _Runs) -> str:
    found = list(runs[place].values())
    planted = "".join(f" with `{name}`" for name in place.mutants)
    cells = (
        f"{place.system}{planted}",
        _ended(story, place, runs),
        _anomalies(found),
        _span([run.acknowledged for run in found]),
        f"{sum(run.effective for run in found)} of {sum(run.faults for run in found)}",
        _span([round(run.seconds) for run in found]),
    )
    return f"| {' | '.join(cells)} |"


def _anomalies(runs: Sequence[Run]) -> str:
    names = sorted({name for run in runs for name in run.anomalies})
    spans = [f"`{name}` {_span([run.anomalies.get(name, 0) for run in runs])}" for name in names]
    return ", ".join(spans) or "none"


def _span(numbers: Sequence[int]) -> str:
    """Return the smallest and the largest number."""
    if not numbers:
        return ""
    least, most = min(numbers), max(numbers)
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"
