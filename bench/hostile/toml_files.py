"""Hostile plan files and suite files."""

from collections.abc import Iterator
from typing import Any

from bench.hostile.case import ANY, REFUSES, Case, file

RUN = ("run", "plan.toml", "--results", "r")
PLAN = 'target = "simulated"\nnemesis = "none"\ntime-limit = 1\nrate = 5\n'
"""A plan whose run ends at once if it is accepted."""
SUITE = '[[matrix]]\ntarget = ["simulated"]\nnemesis = [["none"]]\ntime-limit = 1\n'
VALUES = {
    "empty text": '""',
    "text": '"surprise"',
    "escape": '"\\u001b]0;a\\u0007"',
    "number": "7",
    "negative": "-7",
    "zero": "0",
    "fraction": "1.5",
    "nan": "nan",
    "infinity": "inf",
    "minus infinity": "-inf",
    "2^63": str(1 << 63),
    "10^400": "1" + "0" * 400,
    "true": "true",
    "list": "[]",
    "list of lists": "[[[]]]",
    "table": "{}",
    "table of tables": "{a={b={}}}",
    "date": "2026-11-22",
    "time": "07:32:00",
    "date and time": "2026-11-22T07:32:00Z",
    "NUL": '"a\\u0000b"',
    "new line": '"a\\nb"',
    "path": '"../../etc/passwd"',
}
NAMES = (
    "workload",
    "nemesis",
    "target",
    "time-limit",
    "rate",
    "concurrency",
    "brokers",
    "seed",
    "mutant",
    "broker",
    "producer",
    "consumer",
    "expect",
    "options",
    "schedule",
    "inline",
)
RIGHT = {
    "workload": (),
    "target": (),
    "nemesis": (),
    "time-limit": ("number", "fraction"),
    "rate": ("number", "fraction", "2^63"),
    "concurrency": ("number",),
    "brokers": ("number",),
    "seed": ("number", "negative", "zero"),
    "mutant": ("list",),
    "broker": ("table",),
    "producer": ("table",),
    "consumer": ("table",),
    "expect": ("table",),
    "options": ("table",),
    "schedule": ("list",),
    "inline": ("true",),
}
"""The values above that are valid; such plans would be run, and are left out."""


def _toml(name: str, text: str | bytes, arguments: tuple[str, ...] = RUN, **more: Any) -> Case:
    return Case(f"plan: {name}", arguments, file("plan.toml", text), **more)


def _without(name: str) -> str:
    return "".join(line for line in PLAN.splitlines(True) if not line.startswith(name))


def plans() -> Iterator[Case]:
    """Yield hostile plan files."""
    for name in NAMES:
        for what, value in VALUES.items():
            if what not in RIGHT[name]:
                yield _toml(f"{name} is {what}", f"{name} = {value}\n{_without(name)}")
    for table in ("broker", "producer", "consumer", "options"):
        for what, value in VALUES.items():
            yield _toml(f"{table}.surprise is {what}", f"{PLAN}[{table}]\nsurprise = {value}\n")
    for field in ("id", "at_s", "duration_s", "fault", "targets", "options"):
        for what, value in VALUES.items():
            right = {
                "id": ("number", "negative", "zero"),
                "at_s": ("zero",),
                "duration_s": ("number", "zero", "fraction"),
                "options": ("table",),
            }
            if what in right.get(field, ()) or field == "targets":
                continue
            entry = {
                "id": "1",
                "at_s": "0.5",
                "duration_s": "0.1",
                "fault": '"kill"',
                "targets": '["broker-1"]',
                "options": "{}",
            } | {field: value}
            text = PLAN.replace('"none"', '"kill"') + "[[schedule]]\n"
            if field == "options" and "table" in what:
                continue
            yield _toml(
                f"a fault whose {field} is {what}",
                text + "".join(f"{n} = {v}\n" for n, v in entry.items()),
            )
    yield _toml(
        "an unknown field of a fault",
        PLAN.replace('"none"', '"kill"')
        + "[[schedule]]\nid=1\nat_s=0.5\nduration_s=0.1\nfault='kill'\ntargets=['broker-1']\n"
        + "durations=5\n",
    )
    yield from _syntax("plan", "plan.toml", RUN, PLAN)
    yield from _tables("plan", "plan.toml", RUN, PLAN)
    for name in NAMES:
        yield _toml(f"{name} twice", f"{PLAN}{name} = 1\n{name} = 2\n")
        yield _toml(f"{name} with underscores", f"{name}_ = 1\n{PLAN}")
        yield _toml(f"{name} in capitals", f"{name.upper()} = 1\n{PLAN}")
        yield _toml(f"{name} within itself", f"{_without(name)}[{name}.{name}.{name}]\na = []\n")
    for what, text in {
        "an empty schedule and a nemesis": PLAN.replace('"none"', '"kill"') + "schedule = []\n",
        "a schedule without its nemesis": PLAN + FAULT,
        "a fault after the end": PLAN.replace('"none"', '"kill"') + FAULT.replace("0.5", "99.0"),
        "a fault at a node that does not exist": KILL.replace("broker-1", "broker-77"),
        "a fault at a node of escapes": KILL.replace("broker-1", "\\u001b[2J"),
        "a fault at numbers": KILL.replace('"broker-1"', "1"),
        "two faults of one id": KILL + FAULT,
        "an id of more than 64 bits": KILL.replace("id = 1", f"id = {1 << 63}"),
        "a mutant twice as text and list": f'{PLAN}mutant = "x"\nmutants = ["y"]\n',
        "results with a line break": f'{PLAN}results = "a\\nb/../../c"\n',
        "results in another folder": f'{PLAN}results = "/tmp/elsewhere"\n',
        "results in the home folder": f'{PLAN}results = "~/elsewhere"\n',
        "a library": f'{PLAN}[producer]\n"plugin.library.paths" = "x.so"\n',
        "a setting with a line break": f'{PLAN}[broker]\n"a\\nb" = "c"\n',
        "a setting without a name": f'{PLAN}[broker]\n"" = "c"\n',
        "a setting with escapes": f'{PLAN}[broker]\n"\\u001b[2J" = "\\u001b[2J"\n',
        "a long setting": f'{PLAN}[broker]\n{"x" * 9000} = "{"y" * 9000}"\n',
        "more replicas than brokers": f"{PLAN}[options]\nreplication_factor = 7\n",
        "fewer than no topics": f"{PLAN}[options]\ntopics = -1\n",
        "topics without end": f"{PLAN}[options]\ntopics = {1 << 62}\n",
        "partitions without end": f"{PLAN}[options]\npartitions = {1 << 62}\n",
    }.items():
        yield _toml(what, text)
    for device in ("/dev/zero", "/dev/null", "/dev/stdin", "/proc/self/mem", "/"):
        yield Case(f"plan: the file {device}", ("run", device))
        yield Case(f"suite: the file {device}", ("gate", device))
        yield Case(f"search: the file {device}", ("search", device))


def _syntax(kind: str, path: str, arguments: tuple[str, ...], text: str) -> Iterator[Case]:
    """Yield errors that any TOML file can have."""
    for name, content in {
        "an unknown key": "surprise = 1\n" + text,
        "a key with escapes": '"\\u001b]0;a" = 1\n' + text,
        "the empty key": '"" = 1\n' + text,
        "a key twice": "surprise = 1\nsurprise = 2\n" + text,
        "no value": "workload =\n",
        "no equals sign": "workload\n",
        "text without an end": 'workload = "idem\n',
        "deep lists": "workload = " + "[" * 50_000,
        "deep lists that end": "options = {a=" + "[" * 3000 + "]" * 3000 + "}\n" + text,
        "deep tables": "options = " + "{a=" * 3000 + "1" + "}" * 3000 + "\n" + text,
        "a deep key": "options." + ".".join("a" * 3000) + " = 1\n" + text,
        "invalid UTF-8": b"# \xff\xfe\n" + text.encode(),
        "UTF-16": text.encode("utf-16"),
        "a byte order mark": b"\xef\xbb\xbf" + text.encode(),
        "NUL": b"\0" + text.encode(),
        "escapes": "\x1b[31m" + text,
        "JSON": '{"workload": "idempotent"}',
        "random bytes": bytes(range(256)),
        "digits without end": "seed = " + "9" * 9999 + "\n" + text,
    }.items():
        yield Case(f"{kind}: {name}", arguments, file(path, content))
    yield Case(f"{kind}: a folder", arguments, lambda folder: (folder / path).mkdir())
    yield Case(f"{kind}: missing", arguments)


FAULT = """[[schedule]]
id = 1
at_s = 0.5
duration_s = 0.1
fault = "kill"
targets = ["broker-1"]
"""
KILL = PLAN.replace('"none"', '"kill"') + FAULT


def _tables(kind: str, path: str, arguments: tuple[str, ...], text: str) -> Iterator[Case]:
    """Yield tables that are duplicate, or have no name or a strange one."""
    for name, more in {
        "an unknown table": "[surprise]\na = 1\n",
        "an unknown list of tables": "[[surprise]]\na = 1\n",
        "a table without a name": '[""]\na = 1\n',
        "a table with escapes": '["\\u001b]0;a\\u0007"]\na = 1\n',
        "a table with a line break": '["a\\nINVALID  b"]\na = 1\n',
        "a table with a long name": f"[{'x' * 9000}]\na = 1\n",
        "a table twice": "[surprise]\na = 1\n[surprise]\nb = 1\n",
        "a table that was a list": "[[surprise]]\n[surprise]\n",
        "a table that was a number": "[a]\nb = 1\n[a.b]\nc = 1\n",
        "a key and a table": "a.b = 1\n[a]\nb = 2\n",
        "an inline table that goes on": "surprise = {a = 1}\n[surprise.b]\n",
        "a lone surrogate": 'surprise = "\\ud800"\n',
        "a code point beyond Unicode": 'surprise = "\\U00110000"\n',
        "an unknown escape": 'surprise = "\\x"\n',
        "a raw escape": 'surprise = "\x1b"\n',
        "a line break in text": 'surprise = "a\nb"\n',
        "a date without a day": "surprise = 2026-13-45\n",
        "a million spaces": "surprise = 1" + " " * 1_000_000 + "\n",
        "a million letters": f'surprise = "{"x" * 1_000_000}"\n',
        "ten thousand keys": "".join(f"key{number} = 1\n" for number in range(10_000)),
        "ten thousand tables": "".join(f"[table{number}]\n" for number in range(10_000)),
        "two thousand lines": "".join(f'key{n} = "{"x" * 400}"\n' for n in range(1900)),
        "a list of two thousand lines": "surprise = [\n" + "1,\n" * 1900 + "]\n",
        "a carriage return": "surprise = 1\rsurprises = 2\n",
    }.items():
        yield Case(f"{kind}: {name}", arguments, file(path, text + more))


def suites() -> Iterator[Case]:
    """Yield hostile suite files."""
    gate = ("gate", "suite.toml", "--results", "r")
    yield from _syntax("suite", "suite.toml", gate, SUITE)
    yield from _tables("suite", "suite.toml", gate, SUITE)
    for what, text in {
        "a matrix twice": SUITE + SUITE,
        "a seed twice": f"{SUITE}seed = [1, 1]\n",
        "a seed of more than 64 bits": f"{SUITE}seed = [{1 << 63}]\n",
        "an empty list of seeds": f"{SUITE}seed = []\n",
        "seeds in text": f'{SUITE}seed = ["1"]\n',
        "a plan elsewhere": f'{SUITE}plan = "/nowhere/plan.toml"\n',
        "a plan that is the suite": f'{SUITE}plan = "suite.toml"\n',
        "a plan with a line break": f'{SUITE}plan = "a\\nb.toml"\n',
        "a plan that is a device": f'{SUITE}plan = "/dev/null"\n',
        "a plan that is a folder": f'{SUITE}plan = "."\n',
        "an unknown configuration": f'{SUITE}configuration = ["surprise"]\n',
        "a configuration without a name": f'{SUITE}[configurations.""]\n',
        "a configuration of escapes": f'{SUITE}[configurations."\\u001b[2J"]\n',
        "a configuration with a library": f"{SUITE}configuration = ['a']\n"
        "[configurations.a.producer]\n"
        '"plugin.library.paths" = "x.so"\n',
        "a budget below its case": f"budget-minutes = 0.001\n{SUITE}",
        "a name with a slash": f'name = "../x"\n{SUITE}',
        "no cases": "matrix = []\n",
    }.items():
        yield Case(f"suite: {what}", gate, file("suite.toml", text))
    yield Case("suite: empty", gate, file("suite.toml", ""))
    right = {
        "name": ("text", "number"),
        "time-limit": ("number", "fraction"),
        "inline": ("true",),
        "budget-minutes": ("number", "fraction", "2^63", "infinity"),
        "keep": ("number", "zero", "2^63"),
        "optional-targets": ("list",),
        "configurations": ("table",),
        "matrix": (),
    }
    for name, good in right.items():
        for what, value in VALUES.items():
            if what not in good and not (name == "configurations" and "table" in what):
                base = "" if name == "matrix" else SUITE
                yield Case(
                    f"suite: {name} is {what}",
                    gate,
                    file("suite.toml", f"{name} = {value}\n{base}"),
                )
    axes = ("plan", "workload", "nemesis", "configuration", "target", "seed", "time-limit")
    for name in axes:
        for what, value in VALUES.items():
            if name == "time-limit" and what in ("number", "fraction"):
                continue
            lines = "".join(line for line in SUITE.splitlines(True) if not line.startswith(name))
            yield Case(
                f"suite: {name} of a matrix is {what}",
                gate,
                file("suite.toml", f"{lines}{name} = {value}\n"),
            )
            if name != "plan":
                yield Case(
                    f"suite: {name} of a matrix is a list of {what}",
                    gate,
                    file("suite.toml", f"{lines}{name} = [{value}]\n"),
                    may=ANY
                    if name == "seed" and what in ("number", "negative", "zero")
                    else REFUSES,
                )
