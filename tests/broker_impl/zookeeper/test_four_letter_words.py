"""Four-letter words are answered as Apache ZooKeeper 3.9 answers them."""

import re

import pytest

from broker_impl.zookeeper import four_letter_words
from broker_impl.zookeeper.facts import NOT_SERVING, OPERATIONS, ConnectionFacts, Facts
from broker_impl.zookeeper.figures import Sizes, Traffic
from broker_impl.zookeeper.four_letter_words import WORDS
from broker_impl.zookeeper.quorum.sessions import LearnerSessions
from broker_impl.zookeeper.records import (
    EPHEMERAL,
    OPEN_ACL,
    REQUESTS,
    CreateRequest,
    Op,
    PathWatch,
)
from tests.broker_impl.zookeeper.test_pipeline import Client, World


class Site:
    """A server with two clients, as an operator sees it."""

    def __init__(self) -> None:
        self.world = World()
        self.one, self.two = self.world.client(), self.world.client()
        self.one.ask(Op.CREATE, CreateRequest("/a", b"x", OPEN_ACL, 0))
        self.one.ask(Op.CREATE, CreateRequest("/a/e", b"", OPEN_ACL, EPHEMERAL))
        for client, op, path in (
            (self.one, Op.GET_DATA, "/a"),
            (self.one, Op.GET_CHILDREN, "/a"),
            (self.two, Op.GET_DATA, "/a"),
            (self.two, Op.EXISTS, "/q"),
        ):
            client.ask(op, PathWatch(path, True))
        self.traffic = Traffic(received=4, sent=5)
        self.traffic.answered(Op.EXISTS, 3, 5, now=2324.541, seconds=0.002)
        self.resets: list[str] = []

    def facts(self, *, serves: bool = True) -> Facts:
        return Facts(
            self.world.pipeline if serves else None,
            [
                ConnectionFacts(
                    "127.0.0.1:1", self.id(self.one), 10_000, True, 2, 17, self.traffic
                ),
                ConnectionFacts("127.0.0.1:2", 0, 0, False, 0, 18, Traffic(received=1)),
            ],
            [("tickTime", "1000"), ("serverId", "0")],
            12,
            13,
            Sizes(9, 5, 20),
            {"uptime": 77},
            lambda: self.resets.append("server"),
            lambda: self.resets.append("connections"),
        )

    def id(self, client: Client) -> int:
        return client.session_id

    def ask(self, word: str, *, serves: bool = True) -> str:
        return four_letter_words.reply(word, self.facts(serves=serves))


@pytest.fixture
def site() -> Site:
    return Site()


def test_srvr(site: Site) -> None:
    """srvr: the figures of the server; a leader also shows the sizes of its proposals."""
    expected = (
        "Zookeeper version: 3.9.3-faultline\nLatency min/avg/max: 0/0.0/0\nReceived: 12\nSent: 13\n"
        "Connections: 2\nOutstanding: 0\nZxid: 0x4\nMode: standalone\n{}Node count: 6\n"
    )
    assert site.ask("srvr") == expected.format("")
    sizes = {"last_proposal_size": 9, "min_proposal_size": 5, "max_proposal_size": 20}
    site.world.pipeline.role_figures = lambda: sizes
    assert site.ask("srvr") == expected.format("Proposal sizes last/min/max: 9/5/20\n")


def test_stat_and_cons(site: Site) -> None:
    """stat lists connections in brief; cons with their sessions, and an empty line at the end."""
    first, second = (
        " /127.0.0.1:1[1](queued=2,recved=4,sent=5",
        " /127.0.0.1:2[0](queued=0,recved=1,sent=0)\n",
    )
    version, rest = site.ask("srvr").split("\n", 1)
    assert site.ask("stat") == f"{version}\nClients:\n{first})\n{second}\n{rest}"
    assert site.ask("cons") == (
        f"{first},sid={site.id(site.one):#x},lop=EXIS,est=17,to=10000,lcxid=0x3,lzxid=0x5"
        f",lresp=2324541,llat=2,minlat=2,avglat=2,maxlat=2)\n{second}\n"
    )


def test_watches(site: Site) -> None:
    """wchs counts watches, wchc lists them by session, wchp by path."""
    one, two = f"{site.id(site.one):#x}", f"{site.id(site.two):#x}"
    assert site.ask("wchs") == "2 connections watching 2 paths\nTotal watches:4\n"
    assert site.ask("wchc") == f"{one}\n\t/a\n{two}\n\t/a\n\t/q\n\n"
    assert site.ask("wchp") == f"/a\n\t{one}\n\t{two}\n/q\n\t{two}\n\n"


def test_dump(site: Site) -> None:
    """dump lists when sessions expire, and their ephemeral nodes."""
    one, two = f"{site.id(site.one):#x}", f"{site.id(site.two):#x}"
    text = site.ask("dump")
    assert re.sub(r"at .*:", "at DATE:", text) == (
        f"SessionTracker dump:\nSession Sets (1)/(2):\n2 expire at DATE:\n\t{one}\n\t{two}\n"
        f"ephemeral nodes dump:\nSessions with Ephemerals (1):\n{one}:\n\t/a/e\n"
    )
    assert "at Thu Jan 01 00:00:17 UTC 1970:" in text, "12 s by the wall clock, and the timeout"


def test_a_learner_dumps_timeouts(site: Site) -> None:
    """A learner does not know when sessions expire: it lists their timeouts."""
    sessions = site.world.pipeline.database.sessions
    site.world.pipeline.tracker = LearnerSessions(1000, sessions)
    one, two = f"{site.id(site.one):#x}", f"{site.id(site.two):#x}"
    lines = site.ask("dump").splitlines()
    assert lines[1:4] == ["Global Sessions(2):", f"{one}\t4000ms", f"{two}\t4000ms"]


def test_mntr(site: Site) -> None:
    """mntr has a line for each figure, with its name and a tab."""
    found = dict(line.split("\t") for line in site.ask("mntr").splitlines())
    expected = {
        "version": "3.9.3-faultline", "server_state": "standalone", "packets_received": "12",
        "packets_sent": "13", "num_alive_connections": "2", "outstanding_requests": "0",
        "znode_count": "6", "watch_count": "4", "ephemerals_count": "1", "global_sessions": "2",
        "local_sessions": "0", "last_client_response_size": "9", "min_client_response_size": "5",
        "max_client_response_size": "20", "auth_failed_count": "0", "uptime": "77",
        "approximate_data_size": "51",
    }  # fmt: skip
    assert {key: found[f"zk_{key}"] for key in expected} == expected


def test_resets(site: Site) -> None:
    """srst and crst reset the figures of the server and of the connections."""
    assert site.ask("srst") == "Server stats reset.\n"
    assert site.ask("crst") == "Connection stats reset.\n"
    assert site.resets == ["server", "connections"]


def test_without_a_leader(site: Site) -> None:
    """A server that serves no clients answers only what needs no state."""
    for word in WORDS:
        expected = {"ruok": "imok", "isro": "null", "envi": site.ask("envi")}
        assert site.ask(word, serves=False) == expected.get(word, f"{NOT_SERVING}\n")
    assert site.resets == []


def test_every_operation_has_a_short_name() -> None:
    """Each request that clients can send has a name in ``cons``, besides credentials."""
    assert set(REQUESTS) - set(OPERATIONS) == {Op.AUTH, Op.SASL}
