"""Judges histories of transactions by their isolation, and reports it as a verdict of objects."""

from collections.abc import Sequence
from typing import Literal, NamedTuple, get_args

from checkers import isolation
from checkers.distributed import list_plan
from checkers.distributed.runner import Runner
from checkers.isolation import columnar, large, levels
from checkers.isolation.columnar import ListFile
from checkers.isolation.judging import Model
from checkers.isolation.options import BUDGET
from checkers.object_verdict import ObjectVerdict
from model.history import BadHistory
from model.op import Op

Assumption = Literal["linearizable-keys", "sequential-keys", "wfr-keys"]
ASSUMPTIONS: tuple[Assumption, ...] = get_args(Assumption)
"""What may be assumed of the versions of a register: each key alone is linearizable, or
sequentially consistent; or a transaction that reads a version and writes writes the next one."""

DEPENDENCIES: tuple[Model, ...] = get_args(Model)
"""The data types whose transactions are judged by what they depend on."""
LISTS: Model = "list-append"
SESSIONS = "sessions"
"""Registers with unique values, judged by axioms and a search without an order of versions."""
NAMES = (*DEPENDENCIES, SESSIONS)
REGISTERS = ("rw-register", SESSIONS)
"""The models whose keys have an initial value to choose."""

STRICT, SERIALIZABLE = "strict-serializable", "serializable"


class Asked(NamedTuple):
    """How a history of transactions is judged."""

    model: str
    consistency: tuple[str, ...] = ()
    """Names of consistency models: of the lattice, or of one level of sessions. Without any, strict
    serializability is asked for, and of sessions serializability."""
    anomalies: tuple[str, ...] = ()
    """Further anomalies that are illegal, with all that imply them."""
    assume: tuple[str, ...] = ()
    """Some of :data:`ASSUMPTIONS`."""
    steps: int | None = None
    """How long to search for witnesses, in edges, or for an order of sessions."""
    initial: object = None
    """A value, besides null, of registers that nothing has written yet."""

    def options(self) -> isolation.Options:
        """Return the options of a judgement by dependencies. Raises ``ValueError`` for names that
        do not exist."""
        if wrong := [name for name in self.assume if name not in ASSUMPTIONS]:
            raise ValueError(
                f"{wrong[0]!r} is not an assumption; the assumptions are {', '.join(ASSUMPTIONS)}"
            )
        if self.assume and self.model != "rw-register":
            raise ValueError(f"the model {self.model} needs no assumptions about its versions")
        return isolation.Options(
            self.consistency or (STRICT,),
            self.anomalies,
            linearizable_keys="linearizable-keys" in self.assume,
            sequential_keys="sequential-keys" in self.assume,
            wfr_keys="wfr-keys" in self.assume,
            initial=self.initial,
            budget=BUDGET if self.steps is None else self.steps,
        )

    def level(self) -> str:
        """Return the level of sessions. Raises ``ValueError`` unless there is one that exists."""
        if self.anomalies or self.assume:
            raise ValueError("the model sessions takes neither anomalies nor assumptions")
        [level, *others] = self.consistency or (SERIALIZABLE,)
        if others or level not in levels.LEVELS:
            raise ValueError(f"the consistency of sessions is one of {', '.join(levels.LEVELS)}")
        return level

    def said(self) -> str:
        """Return what was asked for, in one text."""
        default = SERIALIZABLE if self.model == SESSIONS else STRICT
        return ", ".join((*(self.consistency or (default,)), *self.anomalies))


def judge(
    history: Sequence[Op] | ListFile, asked: Asked, runner: Runner | None = None
) -> tuple[ObjectVerdict, isolation.Result | None]:
    """Judge a history; of sessions, there is a verdict alone.

    ``runner`` says where a file is judged, by default in this process. Raises ``ValueError`` for
    names that do not exist, and :class:`~model.history.BadHistory` for a file that is no history of
    the model.
    """
    if isinstance(history, ListFile):
        result = _of_file(history, asked, runner)
        return verdict_of(result, asked.model), result
    if asked.model == SESSIONS:
        return _of_sessions(history, asked), None
    [model] = (name for name in DEPENDENCIES if name == asked.model)
    result = isolation.judge(history, model, asked.options())
    return verdict_of(result, model), result


def _of_file(file: ListFile, asked: Asked, runner: Runner | None) -> isolation.Result:
    if asked.model != LISTS:
        raise BadHistory(f"{file.path}: these are transactions on lists, not of {asked.model}")
    options = asked.options()
    if runner is not None:
        return list_plan.judge(file.path, runner, options)
    try:
        return large.judge(*columnar.read(file.path), options)
    except BadHistory as error:
        named = str(error).startswith(str(file.path))
        raise error if named else BadHistory(f"{file.path}: {error}") from error


def verdict_of(result: isolation.Result, model: str) -> ObjectVerdict:
    """Return what a result says as a verdict."""
    return ObjectVerdict(
        valid=result.valid,
        model=model,
        operations=result.transactions,
        anomalies={name: result.counts.get(name, 1) for name in result.anomaly_types},
        allowed=dict(result.allowed),
        ruled_out=result.ruled_out,
        also_ruled_out=result.also_ruled_out,
        why=tuple(
            f"{name}: {found.text()}"
            for name in result.anomaly_types
            for found in result.anomalies.get(name, ())[:1]
        ),
        unknown_because="; ".join(result.unknown_because) or None,
    )


def _of_sessions(history: Sequence[Op], asked: Asked) -> ObjectVerdict:
    level = asked.level()
    steps = levels.STEPS if asked.steps is None else asked.steps
    found = levels.judge_level(history, level, asked.initial, steps)
    return ObjectVerdict(
        valid=found.valid,
        model=SESSIONS,
        operations=sum(event.type != "invoke" for event in history),
        anomalies={f"not-{level}": 1} if found.valid is False else {},
        why=(found.why,) if found.valid is False else (),
        unknown_because=found.why if found.valid == "unknown" else None,
    )
