"""A refusal says in which line of a plan or suite the mistake is."""

from pathlib import Path

import pytest

from harness.app import request
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
    """Also one of several lines, and of tables in an array."""
    assert line_of(TEXT, path) == line
    assert line_of(TEXT + "broken = ", path) is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('seed = 1\nworkload = "bank"\n', "2: --workload: no bank; there is"),
        ('seed = 1\nnemesis = "kil"\n', "2: --nemesis: no kil; did you mean kill?"),
        ("seed = 1\n\ncolour = 1\n", "3: no setting is called colour; "),
        ("seed = 1\ntime_limit = 5\n", "2: no setting is called time_limit; did you mean"),
        ('workload = "idempotent"\nseed = "x"\n', "2: the plan: Expected `int`, got `str`"),
        ("seed = 1\ntime-limit = -1\n", "2: --time-limit -1: must be a number of seconds above 0"),
        ("seed = 1\nrate = 0\n", "2: rate 0: must be"),
        ("seed = 1\nnemesis = []\n", "2: nemesis names nothing; "),
        ("[broker]\nnum.partitions = 3\nnum.partition = 3\n",
         "3: --set broker.num.partition=3: unknown setting num.partition;"),
        ('[producer]\nack = "all"\n', "2: --set producer.…: No such configuration property"),
        ("[options]\ntopics = 1\npartitons = 1\n", "3: options: no partitons; did you mean"),
        ("[options]\ntopics = 0\n", "2: options: topics=0: must be"),
        ("[options]\ntopics = 1000000000\n", "2: options: topics=1000000000: must be"),
        ("seed = 1\nbrokers = 3 3\n", "plan.toml: Expected newline or end of document"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_plan_file(tmp_path: Path, text: str, said: str) -> None:
    """With file and line, and the name that was meant."""
    path = tmp_path / "plan.toml"
    path.write_text(text)
    with pytest.raises(Refused) as refused, about(path):
        request.resolve(request.plan_of({"nemesis": ("kill",), **request.from_toml(path)}))
    assert said in str(refused.value).replace(f"{path}:", "").lstrip() or said in str(refused.value)
    assert str(path) in str(refused.value)


def test_an_option_is_not_blamed_on_the_file(tmp_path: Path) -> None:
    """What the command line says wins over the file, also where it is wrong."""
    path = tmp_path / "plan.toml"
    path.write_text('workload = "idempotent"\n')
    with pytest.raises(Refused, match=r"^--workload: no bank"), about(path, ["--workload"]):
        request.resolve(request.plan_of(request.from_toml(path) | {"workload": "bank"}))


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
        ('workload = ["bank"]', ":8: matrix 2: workload: no bank; there is"),
        ('nemesiss = [["kill"]]', ":8: matrix 2: no setting is called nemesiss; did you mean"),
        ('target = ["simulatd"]', ":8: matrix 2: target: no simulatd; did you mean simulated"),
        ('configuration = ["even"]', ":8: matrix 2: configuration: no even; there is default, odd"),
        ("seed = 1", ":8: matrix[1].seed: Expected `array"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_suite(tmp_path: Path, text: str, said: str) -> None:
    """With file and line, too."""
    path = tmp_path / "suite.toml"
    path.write_text(MATRIX + text + "\n")
    with pytest.raises(Refused) as refused:
        suite.load(path)
    assert said in str(refused.value)
