"""Historic bugs, each a replacement of one rule of the broker, registered with its description.

A mutant is a function with the signature of the rule that it replaces. The rule's own module has no
switch and does not know about mutants: planting one sets the module's attribute, so rules are
always called through their module and never imported by name.
"""

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from broker_impl.errors import ConfigError

Kind = Literal["historic", "mutation", "control", "protocol"]
"""``historic``: a defect that Kafka or this broker once had. ``mutation``: an invented defect in a
documented rule. ``control``: a loss that is inherent in a configuration. ``protocol``: another
protocol, correct by itself, under which bugs show that this broker's own protocol would hide."""

_SECTIONS = (
    "compaction",
    "controller",
    "epochs",
    "fetching",
    "groups",
    "isr",
    "logs",
    "offsets",
    "producers",
    "protocols",
    "replicas",
    "transactions",
)

_Rule = TypeVar("_Rule", bound=Callable[..., Any])


@dataclass(frozen=True)
class Mutant:
    """One bug that can be planted, with what is known about it."""

    name: str
    of: str
    """The rule that the mutant replaces, as ``module:function``."""
    source: str
    """Catalogue id, JIRA issue, KIP."""
    kind: Kind
    symptom: str
    """The anomaly that the bug must be reported as; empty for a protocol."""
    schedule: str
    """The events that make the bug show, in one sentence."""
    tier: Literal[1, 2, 3]
    """1: the bug shows quickly and clients observe it. 2: it needs a long run or an exact order of
    events. 3: only snapshots of the brokers' state, or a long wait, reveal it."""
    rule: Callable[..., Any]

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
) -> Callable[[_Rule], _Rule]:
    """Register the decorated function as the mutant of this name."""

    def register(rule: _Rule) -> _Rule:
        assert name not in _registry, f"two mutants have the name {name}"
        _registry[name] = Mutant(name, of, source, kind, symptom, schedule, tier, rule)
        return rule

    return register


def _load() -> dict[str, Mutant]:
    for section in _SECTIONS:
        importlib.import_module(f"{__name__}.{section}")
    return _registry


def names() -> list[str]:
    """The names of all mutants, sorted."""
    return sorted(_load())


def get(name: str) -> Mutant:
    """Return the mutant of this name; raise ConfigError if there is none."""
    try:
        return _load()[name]
    except KeyError:
        raise ConfigError(f"no mutant {name!r}; there are {', '.join(names())}") from None


def plant(names: Sequence[str]) -> None:
    """Replace the rules of these mutants. An unknown name raises ConfigError and plants nothing."""
    for chosen in [get(name) for name in names]:
        module_name, function = chosen.of.split(":")
        module = importlib.import_module(module_name)
        _replaced.append((module, function, getattr(module, function)))
        setattr(module, function, chosen.rule)


def removed() -> None:
    """Restore all replaced rules."""
    while _replaced:
        setattr(*_replaced.pop())
