"""A refusal names the line of the mistake in a plan or suite."""

import os
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.app import plan_resolution, toml_lines
from harness.app.gate import suite
from harness.app.refused import Refused
from harness.app.toml_lines import about, line_of

TEXT = """# a plan
workload = "idempotent"
nemesis = [
  "kill",
]
[broker]
num.partitions = 3

[[schedule]]
id = 1
[[schedule]]
id = 2
fault = "kill"
"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("workload",), 2),
        (("nemesis",), 3),
        (("broker",), 6),
        (("broker", "num", "partitions"), 7),
        (("schedule", 0), 9),
        (("schedule", 1), 11),
        (("schedule", 1, "fault"), 13),
        (("schedule", 2), None),
        (("colour",), None),
        ((), None),
    ],
)
def test_the_line_on_which_a_statement_begins(path: tuple[str | int, ...], line: int) -> None:
    """The first line of each statement is found, also of multi-line ones and tables in arrays."""
    assert line_of(TEXT, path) == line
    assert line_of(TEXT + "broken = ", path) is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('seed = 1\nworkload = "bank"\n', "2: --workload: there is no bank; available: "),
        ('seed = 1\nnemesis = "kil"\n', "2: --nemesis: there is no kil; did you mean kill?"),
        ("seed = 1\n\ncolour = 1\n", "3: no setting is called colour; "),
        ("seed = 1\ntime_limit = 5\n", "2: no setting is called time_limit; did you mean"),
        ('workload = "idempotent"\nseed = "x"\n', "2: the plan: Expected `int`, got `str`"),
        ("seed = 1\ntime-limit = -1\n", "2: --time-limit -1: must be a number of seconds above 0"),
        ("seed = 1\nrate = 0\n", "2: rate 0: must be"),
        ("seed = 1\nnemesis = []\n", "2: nemesis is empty; "),
        ("[broker]\nnum.partitions = 3\nnum.partition = 3\n",
         "3: --set broker.num.partition=3: unknown setting num.partition;"),
        ('[producer]\nack = "all"\n', "2: --set producer.…: No such configuration property"),
        ("[options]\ntopics = 1\npartitons = 1\n", "3: options: there is no partitons; did"),
        ("[options]\ntopics = 0\n", "2: options: topics=0: must be"),
        ("[options]\ntopics = 1000000000\n", "2: options: topics=1000000000: must be"),
        ("seed = 1\nbrokers = 3 3\n", "plan.toml: Expected newline or end of document"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_plan_file(tmp_path: Path, text: str, said: str) -> None:
    """A refusal has the file, the line, and a suggested name."""
    path = tmp_path / "plan.toml"
    path.write_text(text)
    with pytest.raises(Refused) as refused, about(path):
        plan_resolution.resolve(
            plan_resolution.plan_of({"nemesis": ("kill",), **plan_resolution.from_toml(path)})
        )
    assert said in str(refused.value).replace(f"{path}:", "").lstrip() or said in str(refused.value)
    assert str(path) in str(refused.value)


def test_an_option_is_not_blamed_on_the_file(tmp_path: Path) -> None:
    """A mistake on the command line, which overrides the file, is not reported as the file's."""
    path = tmp_path / "plan.toml"
    path.write_text('workload = "idempotent"\n')
    with (
        pytest.raises(Refused, match=r"^--workload: there is no bank"),
        about(path, ["--workload"]),
    ):
        plan_resolution.resolve(
            plan_resolution.plan_of(plan_resolution.from_toml(path) | {"workload": "bank"})
        )


MATRIX = """time-limit = 20
[configurations.odd]
brokers = 3
[[matrix]]
nemesis = [["kill"]]
[[matrix]]
nemesis = [["pause"]]
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('workload = ["bank"]', ":8: matrix 2: workload: there is no bank; available: "),
        ('nemesiss = [["kill"]]', ":8: matrix 2: no setting is called nemesiss; did you mean"),
        ('target = ["simulatd"]', ":8: matrix 2: target: there is no simulatd; did you mean"),
        ('configuration = ["even"]',
         ":8: matrix 2: configuration: there is no even; available: default, odd"),
        ("seed = 1", ":8: matrix[1].seed: Expected `array"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_suite(tmp_path: Path, text: str, said: str) -> None:
    """A refusal of a suite has the file and the line, too."""
    path = tmp_path / "suite.toml"
    path.write_text(MATRIX + text + "\n")
    with pytest.raises(Refused) as refused:
        suite.load(path)
    assert said in str(refused.value)


STATEMENTS = (
    "# a comment",
    "",
    "key{} = 1",
    "key{} = [",
    "  1,",
    "]",
    "[table{}]",
    "[[list]]",
    'text{} = """',
    '"""',
    "dotted{}.key = 1",
)


def by_every_line(text: str, path: toml_lines.Path_) -> int | None:
    """Find the line by parsing every prefix of the file, as a slow reference."""
    before, lines = 0, text.splitlines()
    for number in range(1, len(lines) + 1):
        try:
            found: Any = tomllib.loads("\n".join(lines[:number]))
        except ValueError:
            continue
        if path[0] in found:
            return before + 1
        before = number
    return None


@given(st.lists(st.sampled_from(STATEMENTS), max_size=30))
def test_each_key_is_found_as_by_every_line(chosen: list[str]) -> None:
    """The line equals the reference's, with multi-line statements, comments and tables."""
    text = "\n".join(line.format(number) for number, line in enumerate(chosen))
    try:
        document = tomllib.loads(text)
    except ValueError:
        return
    for key in document:
        assert line_of(text, (key,)) == by_every_line(text, (key,))


def test_a_long_file_is_parsed_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long file is parsed few times, as each parse takes time in proportion to its length."""
    parsed: list[int] = []

    def counted(text: str) -> Any:
        parsed.append(len(text))
        return tomllib.loads(text)

    monkeypatch.setattr(toml_lines, "_parsed", counted)
    lines = [f"key{number} = 1" for number in range(1999)]
    assert line_of("\n".join([*lines, "surprise = 1"]), ("surprise",)) == 2000
    assert len(parsed) < 20


@pytest.mark.parametrize(
    "text", ["x" * (1 << 20) + " = 1", "key = [\n" + "1,\n" * 1900 + "]\nother = 1"]
)
def test_a_file_that_takes_long_is_not_searched(text: str) -> None:
    """If finding the line would take too long, the refusal has none."""
    assert line_of(text, (text.split(" ")[0],)) is None


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    """Pipes and devices are refused: reading them could block or fill the memory."""
    pipe = tmp_path / "plan.toml"
    os.mkfifo(pipe)
    for path in (pipe, Path("/dev/zero"), Path("/dev/null")):
        with pytest.raises(Refused, match=f"^{path}: this is not a regular file"):
            plan_resolution.from_toml(path)
        with pytest.raises(Refused, match=f"^{path}: this is not a regular file"):
            suite.load(path)


def test_a_huge_file_is_not_read(tmp_path: Path) -> None:
    """A file that is too large is refused with the limit."""
    path = tmp_path / "plan.toml"
    with path.open("wb") as file:
        file.truncate(17 << 20)
    with pytest.raises(Refused, match="the file has 17,825,792 bytes; the maximum is 16,777,216"):
        plan_resolution.from_toml(path)
