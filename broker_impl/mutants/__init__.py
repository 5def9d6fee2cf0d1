"""Historic bugs as replacements of single rules, each beside its story.

A mutant is a function with the signature of the rule that it replaces. The rule's own module holds
no switch and does not know: planting sets the module's attribute, which is why rules are called
through their module and never imported by name.
"""

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from broker_impl.errors import ConfigError

Kind = Literal["historic", "mutation", "control", "protocol"]
"""A defect that was; a fault of ours in a documented rule; a loss inherent in a configuration;
another protocol, correct by itself, under which bugs show that ours would hide."""

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
    """One planted bug."""

    name: str
    of: str
    """The rule that it replaces, ``module:function``."""
    source: str
    """Catalogue id, JIRA, KIP."""
    kind: Kind
    symptom: str
    """The anomaly that it must be reported as; empty for a protocol."""
    schedule: str
    """What has to happen for it to show, in a sentence."""
    tier: Literal[1, 2, 3]
    """1: quick to show, and seen by clients; 2: needs a long run or an exact order; 3: only state
    or patience shows it."""
    rule: Callable[..., Any]

    @property
    def story(self) -> str:
        """What the bug does and why it loses data."""
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
        assert name not in _registry, f"two mutants are called {name}"
        _registry[name] = Mutant(name, of, source, kind, symptom, schedule, tier, rule)
        return rule

    return register


def _load() -> dict[str, Mutant]:
    for section in _SECTIONS:
        importlib.import_module(f"{__name__}.{section}")
    return _registry


def names() -> list[str]:
    """Every mutant there is, sorted."""
    return sorted(_load())


def get(name: str) -> Mutant:
    """One mutant; ConfigError when there is none of this name."""
    try:
        return _load()[name]
    except KeyError:
        raise ConfigError(f"no mutant {name!r}; there are {', '.join(names())}") from None


def plant(names: Sequence[str]) -> None:
    """Put these in place of their rules; ConfigError, and nothing planted, for an unknown name."""
    for chosen in [get(name) for name in names]:
        module_name, function = chosen.of.split(":")
        module = importlib.import_module(module_name)
        _replaced.append((module, function, getattr(module, function)))
        setattr(module, function, chosen.rule)


def removed() -> None:
    """Put all replaced rules back."""
    while _replaced:
        setattr(*_replaced.pop())
