"""One leader for each epoch, equal states, and servers that serve again after faults."""

from collections.abc import Iterator

from checkers.invariants.ensemble.commits import CommittedOrder
from checkers.invariants.ensemble.member_step import MemberStep, shown
from checkers.invariants.step import Rules, Step
from model.ensemble_snapshot import EnsembleState
from model.violation import Violation


class OneLeader:
    """``zab-one-leader-per-epoch``: no two servers ever lead the same epoch (I5).

    A server promises each epoch to one leader only, and a leader needs the promises of a quorum.
    """

    def __init__(self) -> None:
        self._leaders: dict[int, int] = {}

    def step(self, step: MemberStep) -> Iterator[Violation]:
        """Process the next snapshot."""
        for change in step.changed:
            if not change.now.has_quorum:
                continue
            epoch = change.now.epoch
            leader = self._leaders.setdefault(epoch, change.server)
            if leader != change.server:
                yield step.found(
                    "zab-one-leader-per-epoch",
                    f"servers {leader} and {change.server} have both led epoch {epoch}",
                    servers=(leader, change.server),
                    epochs=(epoch,),
                )


class EqualStates:
    """``zab-equal-states``: the same transactions give the same nodes and sessions (I3, I11).

    A transaction holds everything that its effect depends on, and each zxid has one history before
    it. So all servers have the same state after the same zxid, whether they have applied each
    transaction, replayed a log over a snapshot, or received the state.
    """

    def __init__(self) -> None:
        self._digests: dict[int, tuple[int, int]] = {}

    def step(self, step: MemberStep) -> Iterator[Violation]:
        """Process the next snapshot."""
        for change in step.changed:
            now = change.now
            if now.digest is None:
                continue
            known, owner = self._digests.setdefault(now.applied, (now.digest, change.server))
            if known != now.digest:
                yield step.found(
                    "zab-equal-states",
                    f"servers {owner} and {change.server} have different nodes or sessions after "
                    f"transaction {shown(now.applied)}",
                    servers=(owner, change.server),
                )


class EnsembleLiveness:
    """``zab-stuck``: once all faults are healed, every server serves within a bound (I13).

    The protocol does not promise this, but a run does: its bound must leave time for elections.
    Every server runs, has a leader in the same epoch, and has applied all that is committed.
    """

    is_pending = False
    """Whether something was missing in the last snapshot that may still come within the bound."""

    def __init__(self, rules: Rules, order: CommittedOrder) -> None:
        self._bound_s = rules.recovery_s
        self._order = order
        self._judged: int | None = None

    def step(self, step: Step) -> Iterator[Violation]:
        """Process the next snapshot, whether or not the ensemble has changed."""
        since, ensemble = step.now.calm_since_ns, step.now.ensemble
        self.is_pending = False
        if self._bound_s is None or since is None or since == self._judged or ensemble is None:
            return
        lacks = self._lacks(ensemble)
        if step.now.time_ns - since < self._bound_s * 1e9:
            self.is_pending = lacks is not None
            return
        self._judged = since
        if lacks is not None:
            server, why = lacks
            yield step.violation(
                "zab-stuck",
                f"{self._bound_s:g} s after the last heal {why}",
                brokers=(server,),
            )

    def _lacks(self, ensemble: EnsembleState) -> tuple[int, str] | None:
        epochs = set()
        for server in ensemble.servers:
            member = ensemble.members.get(server)
            if member is None:
                return server, f"server {server} does not run"
            if not member.is_established:
                return server, f"server {server} is {member.role} and serves no clients"
            if member.applied < self._order.last:
                return server, (
                    f"server {server} has applied {shown(member.applied)}, but "
                    f"{shown(self._order.last)} is committed"
                )
            epochs.add(member.epoch)
            if len(epochs) > 1:
                return server, f"servers serve in different epochs: {sorted(epochs)}"
        return None
