"""Bugs that can be planted in broker and ZooKeeper: mutants, each with a description.

A mutant is a function that replaces a rule, another function of the broker with the same signature.
The module of the rule contains no switch and does not refer to mutants: planting a mutant sets the
module's attribute. Therefore rules must be called through their module and not imported by name.
"""

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from broker_impl.errors import ConfigError

System = Literal["kafka", "zookeeper"]
"""The system in which a bug is planted: brokers, or the servers of a ZooKeeper ensemble."""
Kind = Literal["historic", "mutation", "control", "protocol"]
"""``historic``: a defect that Kafka or this broker once had. ``mutation``: an invented defect in a
documented rule. ``control``: a loss of data that a configuration permits. ``protocol``: another
correct protocol, with which the checkers can detect bugs that this broker's protocol hides."""

_SECTIONS = (
    "access",
    "compaction",
    "connections",
    "controller",
    "epochs",
    "fetching",
    "groups",
    "isr",
    "logins",
    "logs",
    "members",
    "moves",
    "offsets",
    "producers",
    "protocols",
    "readers",
    "replicas",
    "settings",
    "transaction_producers",
    "transactions",
    "zookeeper_clients",
    "zookeeper_elections",
    "zookeeper_histories",
)

_Rule = TypeVar("_Rule", bound=Callable[..., Any])


@dataclass(frozen=True)
class Mutant:
    """A bug that can be planted, with its description."""

    name: str
    of: str
    """The rule that the mutant replaces, as ``module:function``."""
    source: str
    """Catalogue id, JIRA issue, KIP."""
    kind: Kind
    symptom: str
    """The anomaly as which the checkers must report the bug; empty for a protocol."""
    schedule: str
    """The events under which the bug becomes visible, in one sentence."""
    tier: Literal[1, 2, 3]
    """1: clients observe the bug after a short time. 2: it needs a long run or an exact order of
    events. 3: only snapshots of the brokers' state, or a long wait, reveal it."""
    rule: Callable[..., Any]
    is_planned: bool = True
    """Does a plan show it? False if other rules hide it, or only a rig of its own can show it."""

    @property
    def system(self) -> System:
        """The system whose rule it replaces."""
        return "zookeeper" if self.of.startswith("broker_impl.zookeeper") else "kafka"

    @property
    def story(self) -> str:
        """What the bug does and why data is lost: the docstring of the replacing function."""
        return (self.rule.__doc__ or "").strip()


_registry: dict[str, Mutant] = {}
_replaced: list[tuple[Any, str, Any]] = []


def mutant(
    name: str,
    *,
    of: str,
    source: str,
    kind: Kind,
    symptom: str,
    schedule: str,
    tier: Literal[1, 2, 3] = 1,
    is_planned: bool = True,
) -> Callable[[_Rule], _Rule]:
    """Return a decorator that registers a function as the mutant with this name."""

    def register(rule: _Rule) -> _Rule:
        assert name not in _registry, f"two mutants have the name {name}"
        _registry[name] = Mutant(name, of, source, kind, symptom, schedule, tier, rule, is_planned)
        return rule

    return register


def _load() -> dict[str, Mutant]:
    for section in _SECTIONS:
        importlib.import_module(f"{__name__}.{section}")
    return _registry


def names(system: System | None = None) -> list[str]:
    """Return the names of all mutants, or of those of a system, sorted."""
    return sorted(name for name, each in _load().items() if system in (None, each.system))


def get(name: str) -> Mutant:
    """Return the mutant with this name; raise ConfigError if there is none."""
    try:
        return _load()[name]
    except KeyError:
        raise ConfigError(f"no mutant {name!r}; there are {', '.join(names())}") from None


def plant(names: Sequence[str]) -> None:
    """Plant these mutants: replace the rule of each by the mutant's function.

    If a name is unknown, ConfigError is raised and no rule is replaced.
    """
    for chosen in [get(name) for name in names]:
        module_name, function = chosen.of.split(":")
        module = importlib.import_module(module_name)
        _replaced.append((module, function, getattr(module, function)))
        setattr(module, function, chosen.rule)


def removed() -> None:
    """Remove all planted mutants: restore the original function of every replaced rule."""
    while _replaced:
        setattr(*_replaced.pop())
