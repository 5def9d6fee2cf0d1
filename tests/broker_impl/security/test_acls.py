import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_impl.security.acls import (
    EVERYONE,
    Acls,
    Authorizer,
    Binding,
    Entry,
    Filter,
    Operation,
    Pattern,
    Permission,
    Resource,
    ResourceType,
    Subject,
    super_users,
)

ALLOW, DENY = Permission.ALLOW, Permission.DENY
TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
READ, WRITE, DESCRIBE, ALL = Operation.READ, Operation.WRITE, Operation.DESCRIBE, Operation.ALL
ALICE = Subject("User:alice", "10.0.0.1")


def entry(
    operation: Operation = READ,
    permission: Permission = ALLOW,
    principal: str = "User:alice",
    host: str = "*",
) -> Entry:
    return Entry(principal, host, operation, permission)


def literal(name: str, kind: ResourceType = TOPIC) -> Resource:
    return Resource(kind, name, Pattern.LITERAL)


def prefixed(name: str) -> Resource:
    return Resource(TOPIC, name, Pattern.PREFIXED)


def authorizer(*bindings: tuple[Resource, Entry], allow_without_acl: bool = False) -> Authorizer:
    made = Authorizer(["User:root"], allow_without_acl=allow_without_acl)
    for resource, each in bindings:
        made.acls.replace(resource, made.acls.of(resource) | {each})
    return made


@pytest.mark.parametrize(
    ("bindings", "operation", "allowed"),
    [
        ([], READ, False),
        ([(literal("orders"), entry())], READ, True),
        ([(literal("orders"), entry())], WRITE, False),
        ([(literal("order"), entry())], READ, False),
        ([(literal("orders", GROUP), entry())], READ, False),
        ([(literal("*"), entry())], READ, True),
        ([(prefixed("ord"), entry())], READ, True),
        ([(prefixed("orders"), entry())], READ, True),
        ([(prefixed("orders2"), entry())], READ, False),
        ([(prefixed("*"), entry())], READ, False),
        ([(literal("orders"), entry(principal="User:bob"))], READ, False),
        ([(literal("orders"), entry(principal=EVERYONE))], READ, True),
        ([(literal("orders"), entry(host="10.0.0.1"))], READ, True),
        ([(literal("orders"), entry(host="10.0.0.2"))], READ, False),
        ([(literal("orders"), entry(ALL))], WRITE, True),
        ([(literal("orders"), entry()), (literal("orders"), entry(READ, DENY))], READ, False),
        ([(literal("orders"), entry(ALL)), (prefixed("o"), entry(READ, DENY))], READ, False),
        ([(literal("orders"), entry(ALL)), (prefixed("o"), entry(READ, DENY))], WRITE, True),
        ([(literal("orders"), entry()), (literal("*"), entry(ALL, DENY))], READ, False),
        ([(literal("orders"), entry()), (prefixed("x"), entry(ALL, DENY))], READ, True),
        # An ALLOW of an operation on records implies DESCRIBE; a DENY implies nothing.
        ([(literal("orders"), entry(WRITE))], DESCRIBE, True),
        ([(literal("orders"), entry(Operation.CREATE))], DESCRIBE, False),
        (
            [(literal("orders"), entry(DESCRIBE)), (literal("orders"), entry(READ, DENY))],
            DESCRIBE,
            True,
        ),
        ([(literal("orders"), entry(DESCRIBE))], READ, False),
        ([(literal("orders"), entry(Operation.ALTER_CONFIGS))], Operation.DESCRIBE_CONFIGS, True),
    ],
)
def test_entries_decide(
    bindings: list[tuple[Resource, Entry]], operation: Operation, allowed: bool
) -> None:
    """Names, prefixes, ``*``, principals, hosts, DENY before ALLOW and implied operations."""
    assert authorizer(*bindings).allows(ALICE, operation, TOPIC, "orders") is allowed


def test_super_users_and_resources_without_entries() -> None:
    """A super user may do everything; without any entry, the setting decides for all others."""
    denied = literal("orders"), entry(ALL, DENY, EVERYONE)
    for allow_without_acl in (False, True):
        rules = authorizer(denied, allow_without_acl=allow_without_acl)
        assert rules.allows(Subject("User:root", "h"), WRITE, TOPIC, "orders")
        assert not rules.allows(ALICE, WRITE, TOPIC, "orders")
        assert rules.allows(ALICE, WRITE, TOPIC, "others") is allow_without_acl
    assert super_users("User:a; User:CN=b,O=c ;") == ("User:a", "User:CN=b,O=c")


@pytest.mark.parametrize(
    ("bindings", "allowed"),
    [
        ([], False),
        ([(literal("orders"), entry(WRITE))], True),
        ([(literal("orders"), entry(READ))], False),
        ([(literal("orders"), entry(WRITE)), (literal("*"), entry(WRITE, DENY))], False),
        ([(literal("orders"), entry(WRITE)), (literal("orders"), entry(ALL, DENY))], False),
        ([(literal("orders"), entry(WRITE)), (prefixed("ord"), entry(WRITE, DENY))], False),
        ([(literal("orders"), entry(WRITE)), (literal("other"), entry(WRITE, DENY))], True),
        ([(prefixed("ord"), entry(WRITE)), (prefixed("orders"), entry(WRITE, DENY))], True),
        ([(prefixed("orders"), entry(WRITE)), (prefixed("ord"), entry(WRITE, DENY))], False),
        ([(literal("*"), entry(WRITE)), (prefixed("ord"), entry(WRITE, DENY))], True),
    ],
)
def test_a_right_on_any_topic(bindings: list[tuple[Resource, Entry]], allowed: bool) -> None:
    """An idempotent producer needs the right to write some topic, which no DENY covers."""
    assert authorizer(*bindings).allows_any(ALICE, WRITE, TOPIC) is allowed


NAMES = st.sampled_from(["*", "a", "ab", "abc", "b"])
ENTRIES = st.builds(
    Entry,
    st.sampled_from(["User:alice", "User:bob", EVERYONE]),
    st.sampled_from(["*", "10.0.0.1", "10.0.0.2"]),
    st.sampled_from([ALL, READ, WRITE, DESCRIBE, Operation.ALTER]),
    st.sampled_from([ALLOW, DENY]),
)
BINDINGS = st.builds(
    Binding,
    st.builds(
        Resource,
        st.sampled_from([TOPIC, GROUP]),
        NAMES,
        st.sampled_from([Pattern.LITERAL, Pattern.PREFIXED]),
    ),
    ENTRIES,
)
SUBJECTS = st.builds(
    Subject, st.sampled_from(["User:alice", "User:carol"]), st.sampled_from(["10.0.0.1", "h"])
)


def naive(
    bindings: list[Binding], subject: Subject, operation: Operation, name: str, free: bool
) -> bool:
    """Decide as KIP-11 and KIP-290 describe it: search all entries, one by one."""
    own = []
    for (kind, pattern_name, pattern), each in bindings:
        same = pattern_name in (name, "*") if pattern == Pattern.LITERAL else None
        if kind == TOPIC and (same if same is not None else name.startswith(pattern_name)):
            own.append(each)
    if not own:
        return free
    answer = False
    for principal, host, done, permission in own:
        if principal not in (subject.principal, "User:*") or host not in (subject.host, "*"):
            continue
        if permission == DENY and done in (ALL, operation):
            return False
        if permission == ALLOW and (
            done in (ALL, operation) or (operation == DESCRIBE and done in (READ, WRITE, 6, 7))
        ):
            answer = True
    return answer


@given(
    st.lists(BINDINGS, max_size=6),
    SUBJECTS,
    st.sampled_from([READ, WRITE, DESCRIBE]),
    st.sampled_from(["a", "ab", "abc", "abcd", "b"]),
    st.booleans(),
)
def test_the_rules_decide_as_a_naive_search(
    bindings: list[Binding], subject: Subject, operation: Operation, name: str, free: bool
) -> None:
    """The arranged entries decide as a search through all of them."""
    rules = authorizer(*bindings, allow_without_acl=free)
    expected = naive(bindings, subject, operation, name, free)
    assert rules.allows(subject, operation, TOPIC, name) is expected


@given(st.lists(BINDINGS, max_size=5), SUBJECTS)
def test_a_right_on_any_topic_is_a_right_on_some_topic(
    bindings: list[Binding], subject: Subject
) -> None:
    """If a client may write any topic, there is a name that it may write."""
    rules = authorizer(*bindings)
    names = ["*", "a", "ab", "abc", "b", "ax", "abx", "abcx", "bx", "c"]
    if rules.allows_any(subject, WRITE, TOPIC):
        assert any(rules.allows(subject, WRITE, TOPIC, name) for name in names)


@given(st.lists(BINDINGS, max_size=6), BINDINGS)
def test_a_filter_of_everything_about_a_binding_means_only_that(
    bindings: list[Binding], one: Binding
) -> None:
    """A filter with all parts of a binding matches only that one; ANY matches all."""
    (kind, name, pattern), (principal, host, operation, permission) = one
    exact = Filter(kind, name, pattern, principal, host, operation, permission)
    every = Filter(ResourceType.ANY, None, Pattern.ANY, None, None, Operation.ANY, Permission.ANY)
    for each in [*bindings, one]:
        assert exact.matches(each) is (each == one)
        assert every.matches(each)


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        (Pattern.LITERAL, ["abc"]),
        (Pattern.PREFIXED, []),
        (Pattern.ANY, ["abc"]),
        (Pattern.MATCH, ["*", "ab", "abc"]),
    ],
)
def test_filters_of_names(pattern: Pattern, found: list[str]) -> None:
    """MATCH means the entries that apply to a name, the others its own entries (KIP-290)."""
    acls = Acls()
    resources = (literal("*"), literal("abc"), literal("abd"), prefixed("ab"), prefixed("b"))
    for resource in resources:
        acls.replace(resource, {entry()})
    wanted = Filter(TOPIC, "abc", pattern, None, None, Operation.ANY, Permission.ANY)
    named = [each.resource.name for each in acls.bindings() if wanted.matches(each)]
    assert sorted(named) == found


def test_removed_entries_no_longer_apply() -> None:
    """A resource without entries is one for which no ACL exists."""
    acls = Acls()
    acls.replace(prefixed("a"), {entry()})
    acls.replace_all({literal("b"): {entry()}, prefixed("ab"): {entry(WRITE)}})
    assert list(acls.applying(TOPIC, "ab")) == [entry(WRITE)]
    acls.replace(prefixed("ab"), ())
    assert list(acls.applying(TOPIC, "ab")) == []
    assert list(acls.bindings()) == [Binding(literal("b"), entry())]
