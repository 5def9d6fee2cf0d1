"""Hostile command lines and process environments."""

from collections.abc import Iterator

from bench.hostile.case import FAILED, REFUSED, REFUSES, VALID, Case, both, file
from bench.hostile.histories import TEXT
from bench.hostile.toml_files import PLAN, RUN, SUITE

OPTIONS = {
    "run": (
        "--workload",
        "--nemesis",
        "--target",
        "--time-limit",
        "--rate",
        "--concurrency",
        "--brokers",
        "--seed",
        "--mutant",
        "--set",
    ),
    "search": (
        "--runs",
        "--minutes",
        "--jobs",
        "--seed",
        "--workload",
        "--nemesis",
        "--mutant",
        "--set",
        "--keep",
    ),
    "check": ("--set",),
    "replay": ("--target",),
    "shrink": ("--anomaly", "--minutes", "--jobs"),
    "gate": ("--keep", "--seed", "--mutant", "--require"),
    "mutants score": ("--runs", "--enough", "--seed", "--jobs"),
    "cluster up": ("--brokers", "--target", "--mutant", "--set"),
}
TEXTS = (
    "",
    " ",
    "surprise",
    "\x1b]0;a\x07",
    "a\nINVALID  b",
    "nan",
    "inf",
    "-inf",
    "1e400",
    "-7",
    "--",
    "0x10",
    "\udcff",
    "9" * 400,
    "x" * 9000,
    "=",
    "a=b",
    "broker.=1",
    "broker.a",
    "broker.surprise=1",
    ".a=1",
    "producer.acks=surprise",
    "producer.acks=",
    "\u0661",
    "\u202eabc",
)


def command_lines() -> Iterator[Case]:
    """Yield verbs, options and values."""
    for verb, options in OPTIONS.items():
        words = tuple(verb.split())
        for option in options:
            yield Case(f"{verb} {option} without a value", (*words, option))
            for text in TEXTS:
                if option == "--seed" and text in ("-7", "\u0661"):
                    continue  # a number
                if text == "\u0661" and option not in (
                    "--workload",
                    "--nemesis",
                    "--target",
                    "--mutant",
                    "--set",
                ):
                    continue  # a digit: Python reads it as 1
                if option == "--anomaly" and text == "":
                    continue
                more = ("nowhere",) if verb in ("check", "replay", "shrink", "gate") else ()
                quick = ("--target", "simulated") if verb == "run" and option != "--target" else ()
                yield Case(
                    f"{verb} {option} {text[:20]!r}", (*words, *quick, f"{option}={text}", *more)
                )
    for verb in (
        "",
        " ",
        "surprise",
        "RUN",
        "\x1b[31m",
        "x" * 9000,
        "\udcff",
        "--surprise",
        "-x",
        "--",
        "-",
    ):
        yield Case(f"the verb {verb[:10]!r}", (verb,))
    for verb in ("mutants", "cluster"):
        yield Case(f"{verb} surprise", (verb, "surprise"))
    yield Case("nothing", (), shows_help=True)
    yield from _wrong_numbers()
    yield from _repeated()
    yield Case("an option of another verb", ("check", "--keep-going", "x"))
    yield Case("too many arguments", ("run", "a.toml", "b.toml"))
    yield Case("mutants show without a name", ("mutants", "show", ""))
    yield Case("mutants show with escapes", ("mutants", "show", "\x1b]0;a\x07"))
    yield Case("mutants score without a name", ("mutants", "score", "surprise"))
    for number in range(2, 5):
        yield Case(
            f"the seed {number} times, at last wrong",
            ("run", *(("--seed", "1") * number), "--seed", "x"),
        )
    for option in ("--results", "--junit"):
        verb = ("gate", "suite.toml") if option == "--junit" else RUN[:2]
        prepare = both(file("suite.toml", SUITE), file("plan.toml", PLAN))
        for text in ("suite.toml", "suite.toml/x", "/dev/null", "/proc/x", "x" * 5000):
            if (option, text) != ("--junit", "/dev/null"):
                may = frozenset({REFUSED, FAILED}) if text == "/proc/x" else REFUSES
                yield Case(f"{option} {text[:20]}", (*verb, option, text), prepare, may=may)


NUMBERS = {
    "run": ("--time-limit", "--rate", "--concurrency", "--brokers", "--seed"),
    "search": ("--runs", "--minutes", "--jobs", "--seed", "--keep"),
    "gate": ("--keep", "--seed"),
    "mutants score": ("--runs", "--enough", "--seed", "--jobs"),
    "replay": ("--seeds", "--jobs"),
    "cluster up": ("--brokers", "--port"),
}
NO_NUMBERS = (
    "1,000",
    "1..5",
    "1e",
    "0b1",
    "0o7",
    "--1",
    "+-1",
    "1 2",
    "five",
    "None",
    "true",
    "\u221e",
    "\u00bd",
    "1\u00a0000",
    "1\n2",
    "$((1))",
    "`id`",
    "%s",
    "{}",
    "9" * 5000,
)
NOT_WHOLE = ("1.", "1e3", "1.5", "1.0", "nan", "inf", "-inf", "1e400", "NaN")
NOT_POSITIVE = ("0", "-1", "-0.5", "0.0", "-0", "nan", "inf", "-inf", "1e400", str(1 << 63))


def _wrong_numbers() -> Iterator[Case]:
    for verb, options in NUMBERS.items():
        more = ("nowhere",) if verb in ("replay", "gate") else ()
        for option in options:
            is_whole = option not in ("--time-limit", "--rate", "--minutes")
            texts = (*NO_NUMBERS, *(NOT_WHOLE if is_whole else ()))
            if option not in ("--seed", "--keep", "--port"):
                texts = (*texts, *NOT_POSITIVE)
            for text in dict.fromkeys(texts):
                words = (*verb.split(), f"{option}={text}", *more)
                yield Case(f"{verb} {option} {text[:20]!r} as a number", words)


def _repeated() -> Iterator[Case]:
    """Yield options that occur twice or contradict each other."""
    for verb, options in OPTIONS.items():
        for option in options:
            if option in ("--mutant", "--set", "--require", "--anomaly"):
                continue
            yield Case(f"{verb} {option} twice", (*verb.split(), option, "1", option, "2", "x"))
    for text in ("producer.acks=1", "broker.min.insync.replicas=1", "consumer.isolation.level=x"):
        for verb in ("run", "check", "search"):
            words = (verb, "--set", text, "--set", f"{text}1", "nowhere")
            yield Case(f"{verb} --set {text} twice", words)
    for text in (
        "broker",
        "broker=",
        "broker.=",
        "=broker.a",
        "Broker.a=1",
        "broker a=1",
        "broker.a:1",
        "topic.a=1",
        "broker.\n=1",
        "broker.\x1b[2J=1",
        "producer.plugin.library.paths=x.so",
        "broker.log.dirs=/tmp/x",
        "consumer.group.id=x",
        "producer.bootstrap.servers=example.org:9092",
        "broker.min.insync.replicas=nan",
        "broker.min.insync.replicas=-1",
        "broker.min.insync.replicas=99",
        "broker." + "x" * 9000 + "=1",
        "broker.broker.id=" + "9" * 9000,
    ):
        yield Case(f"run --set {text[:30]!r}", ("run", "--target", "simulated", "--set", text))
    for words in (
        ("--tim", "5"),
        ("-seed", "1"),
        ("--Seed", "1"),
        ("--seed=",),
        ("--no-inline",),
        ("--inline", "--spark"),
        ("--json=yes",),
        ("--help=me",),
        ("a.toml", "b.toml"),
        ("--", "--seed"),
        ("\udcff.toml",),
        ("x" * 5000,),
        ("a\nb.toml",),
        ("/dev/null/plan.toml",),
        ("/",),
        ("--nemesis", "none,kill"),
        ("--nemesis", "kill,"),
        ("--nemesis", "KILL"),
        ("--workload", "Idempotent"),
        ("--target", "external"),
        ("--target", "simulated "),
        ("--mutant", ""),
    ):
        yield Case(f"run {' '.join(words)[:40]!r}", ("run", *words))
    for words in (
        ("run",),
        ("run", "--target", "nowhere"),
        ("run", "--seeds", "0"),
        ("run", "--jobs", "-1"),
        ("",),
        ("\udcff",),
        ("x" * 5000,),
        ("/dev/null",),
        (".",),
    ):
        yield Case(f"replay {' '.join(words)[:40]!r}", ("replay", *words))


def processes() -> Iterator[Case]:
    """Yield limits and standard streams of a process."""
    check = ("check", "history.jsonl", "--inline")
    prepare = file("history.jsonl", TEXT)
    valid = frozenset({VALID})
    for name, shell, may in (
        ("standard output is closed", "{} >&-", valid),
        ("standard error is closed", "{} 2>&-", valid),
        ("standard input is closed", "{} <&-", valid),
        ("all streams are closed", "{} <&- >&- 2>&-", valid),
        ("the output is a closed pipe", "set -o pipefail; {} | true", valid),
        ("the output is a full device", "{} >/dev/full", frozenset({FAILED})),
        ("a low limit of open files", "ulimit -n 12; {}", frozenset({VALID, FAILED})),
        ("little memory", "ulimit -v 200000; {}", frozenset({VALID, FAILED})),
        ("some memory", "ulimit -v 900000; {}", frozenset({VALID, FAILED})),
        ("a file size limit of 0", "ulimit -f 0; {}", frozenset({VALID, FAILED})),
        ("no home", "unset HOME; {}", valid),
        ("an ASCII locale", "LC_ALL=C PYTHONUTF8=0 {}", valid),
        ("a dumb terminal", "TERM=dumb {}", valid),
        ("no PATH", "PATH=/nowhere {}", valid),
        ("an unknown locale", "LC_ALL=xx_YY.UTF-8 {}", valid),
        ("a Latin-1 locale", "LC_ALL=en_US.ISO-8859-1 PYTHONUTF8=0 {}", valid),
        ("ASCII streams", "PYTHONIOENCODING=ascii {}", valid),
        ("no columns", "COLUMNS=0 LINES=0 {}", valid),
        ("columns that are not a number", "COLUMNS=abc LINES=-1 {}", valid),
        ("an unknown time zone", "TZ=Nowhere/Land {}", valid),
        ("an unknown terminal", "TERM=surprise {}", valid),
        ("no temporary folder", "TMPDIR=/nowhere {}", valid),
        ("no environment", "env -i PYTHONPATH=$PYTHONPATH {}", valid),
        ("an argument that is not UTF-8", "{} $'\\xff\\xfe'", frozenset({REFUSED})),
        ("an option that is not UTF-8", "{} --set $'producer.\\xff=1'", frozenset({REFUSED})),
        ("a path with escapes", "{} $'\\e[2J\\n'", frozenset({REFUSED})),
        ("a history from a pipe", "cat history.jsonl | {} /dev/stdin", frozenset({REFUSED})),
        ("a history from a substitution", "{} <(cat history.jsonl)", frozenset({REFUSED})),
        ("a removed working folder", "mkdir d; cd d; rmdir ../d; {}", frozenset({REFUSED, FAILED})),
    ):
        yield Case(f"process: {name}", check, prepare, may, shell=shell)
