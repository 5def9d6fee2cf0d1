"""Generated histories of consumer groups: members, commits, transactions, freezes and faults.

Nothing keeps these histories correct: each answer is the right one, or with some probability a
wrong one. They hold all micro-operations of groups in all outcomes, so that they show whether two
ways to judge a history agree.
"""

import random
from collections.abc import Iterator
from typing import Any

from model import transform
from model.op import NEMESIS, Op

_COMMITS = ("sync", "async", "listener", "auto", None)


class GroupWorld:
    """Partitions that writers fill, and members of groups that read them.

    ``wrong`` is how probable a wrong answer is, and ``doubt`` that an operation does not succeed.
    Transactions produce from inputs if ``transactional``.
    """

    def __init__(
        self, rng: random.Random, *, wrong: float = 0.1, doubt: float = 0.1,
        transactional: bool = False, faults: float = 0.02,
    ) -> None:  # fmt: skip
        self.rng, self.wrong, self.doubt, self.faults = rng, wrong, doubt, faults
        self.transactional = transactional
        self.inputs = [f"in-{n}" for n in range(rng.randint(1, 5))]
        self.outputs = [f"out-{n}" for n in range(rng.randint(1, 2))]
        self.groups = ["g", "h"][: rng.randint(1, 2)]
        self.logs: dict[str, list[int]] = {key: [] for key in (*self.inputs, *self.outputs)}
        self.committed: dict[tuple[str, str], list[Any]] = {}
        self.members: dict[int, dict[str, Any]] = {}
        self.open: dict[int, tuple[str, Any, Any]] = {}
        self.events: list[Op] = []
        self.next_process, self.next_value, self.generation = 1, 1, 0
        self.askers = [self.process(), self.process()]
        self.time_ns, self.fault = 0, 0
        self.step_ns = rng.choice((1_000_000, 30_000_000, 900_000_000))

    def history(self, steps: int) -> list[Op]:
        """Return the history of so many steps."""
        for _ in range(steps):
            self.step()
        for process in list(self.open):
            self.end(process)
        for key in self.logs:
            if self.rng.random() < 0.7:
                self.read_all(key)
        return self.events

    def note(self, process: int, kind: Any, f: str, value: Any) -> None:
        self.time_ns += self.rng.randint(0, 2 * self.step_ns)
        self.events.append(
            Op(
                index=len(self.events),
                time_ns=self.time_ns,
                process=process,
                type=kind,
                f=f,
                value=value,
            )
        )

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def step(self) -> None:
        rng = self.rng
        if self.chance(self.faults):
            self.strike()
        elif self.open and self.chance(0.6):
            self.end(rng.choice(list(self.open)))
        elif len(self.members) < 2 or self.chance(0.04):
            self.join()
        elif self.chance(0.25):
            self.send()
        elif self.chance(0.2):
            self.ask()
        else:
            idle = [process for process in self.members if process not in self.open]
            if idle:
                self.act(rng.choice(idle))

    def strike(self) -> None:
        self.fault += 1
        fault = self.rng.choice(("pause", "partition", "kill"))
        what = {"id": self.fault, "targets": [f"broker-{self.rng.randint(1, 3)}"]}
        proof = {"proved": True, "how": "seen"}
        self.note(NEMESIS, "invoke", fault, {**what, "phase": "inject"})
        self.note(NEMESIS, "info", fault, {**what, "phase": "inject", "effect": proof})
        self.time_ns += self.rng.randint(0, 5_000_000_000)
        if self.chance(0.9):
            self.note(NEMESIS, "info", fault, {**what, "phase": "heal", "effect": proof})

    def process(self) -> int:
        self.next_process += 1
        return self.next_process

    def begin(self, process: int, f: str, asked: Any, done: Any) -> None:
        self.note(process, "invoke", f, asked)
        self.open[process] = f, asked, done

    def end(self, process: int) -> None:
        f, asked, done = self.open.pop(process)
        if not self.chance(self.doubt):
            self.note(process, "ok", f, done)
        elif self.chance(0.4):
            self.note(process, "fail", f, asked)
        else:
            if self.chance(0.8):
                self.note(process, "info", f, self.rng.choice((asked, done)))
            self.members.pop(process, None)
            self.askers = [self.process() if each == process else each for each in self.askers]

    def join(self) -> None:
        rng, process = self.rng, self.process()
        group = rng.choice(self.groups)
        how = rng.choice(_COMMITS)
        options = {"commit": how, "instance": rng.choice((None, None, "i", "j"))}
        options["auto.offset.reset"] = rng.choice((None, None, "latest"))
        told = [["subscribe", group, ["in"], {k: v for k, v in options.items() if v}]]
        if self.chance(0.9):
            self.note(process, "invoke", "subscribe", told)
            self.note(process, "ok", "subscribe", told)
        name = f"t-{rng.randint(1, 3)}"
        if self.transactional and self.chance(0.8):
            self.note(process, "invoke", "init", [["init", name]])
            self.note(process, "ok", "init", [["init", name, [process, 0]]])
        self.members[process] = {"group": group, "owned": {}, "how": how}

    def send(self) -> None:
        process, done, asked = self.process(), [], []
        for _ in range(self.rng.randint(1, 3)):
            key, value = self.rng.choice(self.inputs), self.next_value
            self.next_value += 1
            self.logs[key].append(value)
            asked.append(["send", key, value])
            done.append(["send", key, [len(self.logs[key]) - 1, value]])
        self.begin(process, "send", asked, done)

    def ask(self) -> None:
        rng, process = self.rng, self.rng.choice(self.askers)
        if process in self.open:
            return
        keys, group = rng.sample(self.inputs, rng.randint(1, len(self.inputs))), self.group()
        if self.chance(0.15):
            key = keys[0]
            ends = {"start": 0, "high": len(self.logs[key]), "stable": len(self.logs[key])}
            if self.chance(self.wrong):
                ends["high"] = rng.randint(0, 3)
            self.begin(process, "watermarks", [["watermarks", key]], [["watermarks", key, ends]])
        elif self.chance(0.15):
            places = dict.fromkeys(keys)
            for key in keys:
                self.commit(group, key, None)
            value = [["commit", group, places, "sync"]]
            self.begin(process, "commit", value, value)
        else:
            found = {key: self.fetched(group, key) for key in keys}
            asked = [["committed", group, dict.fromkeys(keys)]]
            self.begin(process, "committed", asked, [["committed", group, found]])

    def group(self) -> str:
        return self.rng.choice(self.groups)

    def commit(self, group: str, key: str, offset: Any) -> None:
        self.committed.setdefault((group, key), [None]).append(offset)

    def fetched(self, group: str, key: str) -> Any:
        known = self.committed.get((group, key), [None])
        if self.chance(self.wrong):
            return self.rng.choice((*known, None, self.rng.randint(0, 9), [3, 5]))
        return known[-1]

    def act(self, process: int) -> None:
        what = self.rng.random()
        member = self.members[process]
        if what < 0.03:
            self.begin(process, "leave", [["leave", member["group"]]], [["leave", member["group"]]])
        elif what < 0.06:
            ms = self.rng.choice((60, 500, 4000, 20_000))
            value = [["freeze", member["group"], ms]]
            places = {key: self.fetched(member["group"], key) for key in self.inputs[:2]}
            if self.chance(0.5):
                asked = [*value, ["committed", member["group"], dict.fromkeys(places)]]
                done = [*value, ["committed", member["group"], places]]
                self.begin(process, "freeze", asked, done)
            else:
                self.begin(process, "freeze", value, value)
        elif what < 0.25 and member["owned"]:
            self.commits(process, member)
        elif what < 0.6 and self.transactional:
            self.transaction(process, member)
        else:
            self.poll(process, member)

    def commits(self, process: int, member: dict[str, Any]) -> None:
        places = self.positions(member)
        for key, place in places.items():
            self.commit(member["group"], key, place)
        done = [["commit", member["group"], places, "sync"]]
        bare = [["commit", member["group"], None, "sync"]]
        self.begin(process, "commit", self.rng.choice((done, bare)), done)
        if self.open[process][1] is bare:  # a completion repeats its invocation
            self.open[process] = "poll", bare, done
            self.events[-1] = Op(**{**_fields(self.events[-1]), "f": "poll"})

    def positions(self, member: dict[str, Any]) -> dict[str, Any]:
        owned = member["owned"]
        keys = self.rng.sample(sorted(owned), self.rng.randint(1, len(owned)))
        places = {}
        for key in keys:
            places[key] = owned[key] + (self.rng.randint(-2, 3) if self.chance(self.wrong) else 0)
            places[key] = max(places[key], 0)
            if self.chance(0.1):
                places[key] = [places[key], self.rng.randint(1, 3)]
        return places

    def poll(self, process: int, member: dict[str, Any]) -> None:
        done: list[Any] = []
        if not member["owned"] or self.chance(0.1):
            done += self.rebalanced(member)
        done.append(["poll", self.delivered(member)])
        self.begin(process, "poll", [["poll"]], done)

    def rebalanced(self, member: dict[str, Any]) -> Iterator[Any]:
        rng, group = self.rng, member["group"]
        if member["owned"]:
            if self.chance(0.5):
                places = self.positions(member)
                for key, place in places.items():
                    self.commit(group, key, place)
                yield ["commit", group, places]
            gone = rng.sample(sorted(member["owned"]), rng.randint(1, len(member["owned"])))
            for key in gone:
                del member["owned"][key]
            yield [rng.choice(("revoked", "lost")), group, self.generation, gone]
        if self.chance(0.9):
            self.generation += 0 if self.chance(self.wrong) else 1
            keys = rng.sample(self.inputs, rng.randint(0, len(self.inputs)))
            begins = {}
            for key in keys:
                place = self.fetched(group, key)
                place = place[0] if isinstance(place, list) else place
                member["owned"][key] = place or 0
                begins[key] = place if self.chance(0.8) else None
            for other in self.members.values():
                if other is not member and other["group"] == group and not self.chance(self.wrong):
                    for key in keys:
                        other["owned"].pop(key, None)
            yield ["assigned", group, self.generation if self.chance(0.9) else None, begins]

    def delivered(self, member: dict[str, Any]) -> dict[str, Any]:
        found = {}
        for key, place in sorted(member["owned"].items()):
            begin = place + (self.rng.randint(-1, 2) if self.chance(self.wrong) else 0)
            end = min(len(self.logs[key]), max(begin, 0) + self.rng.randint(0, 4))
            records = [[at, self.logs[key][at]] for at in range(max(begin, 0), end)]
            if records:
                found[key] = records
                member["owned"][key] = end
        return found

    def transaction(self, process: int, member: dict[str, Any]) -> None:
        group, before = member["group"], dict(member["owned"])
        done: list[Any] = []
        if not member["owned"] or self.chance(0.1):
            done += self.rebalanced(member)
        records = self.delivered(member)
        done.append(["poll", records])
        for polled in records.values():
            for _, value in polled:
                made = transform.output(value, len(self.events))
                key = self.rng.choice(self.outputs)
                self.logs[key].append(made)
                if not self.chance(self.wrong / 3):
                    done.append(["send", key, [len(self.logs[key]) - 1, made]])
        places: dict[str, Any] = {key: polled[-1][0] + 1 for key, polled in records.items()}
        if self.chance(0.1) and places:
            done.append(["commit-plainly", group, {next(iter(places)): 0}])
        if places:
            done.append(["commit", group, places])
            for key, place in places.items():
                self.commit(group, key, place)
        if self.chance(0.3 if self.wrong else 0.05):
            member["owned"] = before  # it begins again
        asked = [["poll"], ["transform", self.outputs[0]], ["commit", group, None]]
        if self.chance(0.3):
            asked.pop()
        self.begin(process, "txn", asked, done)

    def read_all(self, key: str) -> None:
        process, log = self.process(), self.logs[key]
        records = [[at, value] for at, value in enumerate(log) if not self.chance(self.wrong / 5)]
        for f, asked, done in (
            ("assign", [key], [key]),
            ("poll", [["poll"]], [["poll", {key: records} if records else {}]]),
            ("catch-up", [["catch-up", key]], [["catch-up", key, len(log), len(log)]]),
        ):
            self.note(process, "invoke", f, asked)
            self.note(process, "ok", f, done)


def _fields(op: Op) -> dict[str, Any]:
    return {name: getattr(op, name) for name in op.__struct_fields__}
