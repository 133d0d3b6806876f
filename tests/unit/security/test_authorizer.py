"""The authorizer decides as Kafka's StandardAuthorizer."""

import pytest

from ottla.base.errors import ErrorCode, OttlaError
from ottla.security.acl import Acl, AclFilter, ResourcePattern, check_acl
from ottla.security.authorizer import Authorizer, RulingReason
from ottla.security.names import AclOperation, AclResource, PatternType, Permission
from ottla.security.principal import Principal, parse_principal, parse_super_users
from ottla.security.rules import AclRules
from ottla.security.stored import (
    acl_path,
    decode_acls,
    encode_acls,
    pattern_of,
    unreadable,
)
from tests.unit.security.against_naive import compare

ALICE, BOB = Principal("User", "alice"), Principal("User", "bob")
TOPIC, GROUP = AclResource.TOPIC, AclResource.GROUP
READ, WRITE, DESCRIBE = AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE
PREFIXED, LITERAL = PatternType.PREFIXED, PatternType.LITERAL


def rule(
    name: str,
    operation: AclOperation = READ,
    permission: Permission = Permission.ALLOW,
    kind: PatternType = LITERAL,
    principal: str = "User:alice",
    host: str = "*",
) -> Acl:
    return Acl(ResourcePattern(TOPIC, name, kind), principal, host, operation, permission)


def deny(name: str, operation: AclOperation = READ, kind: PatternType = LITERAL) -> Acl:
    return rule(name, operation, Permission.DENY, kind)


def authorizer(*acls: Acl) -> Authorizer:
    return Authorizer(rules=AclRules(acls))


def allows(asked: Authorizer, name: str, operation: AclOperation = READ) -> bool:
    return asked.allows(ALICE, "10.0.0.1", operation, TOPIC, name)


def test_20000_random_requests_are_decided_as_by_looking_at_every_rule() -> None:
    """A million by hand: `python -m tests.unit.security.against_naive --count 1000000`."""
    assert compare(20_000, seed=7) == []


def test_without_a_rule_a_request_is_denied() -> None:
    """Also where rules for other resources exist."""
    assert not allows(authorizer(), "t")
    assert not allows(authorizer(rule("other")), "t")


def test_a_deny_wins_over_every_allow() -> None:
    """Whichever of the two is literal, prefixed or the wildcard."""
    for denied in (deny("flights"), deny("fl", kind=PREFIXED), deny("*")):
        for allowed in (rule("flights"), rule("f", kind=PREFIXED), rule("*")):
            assert not allows(authorizer(allowed, denied), "flights")
    assert allows(authorizer(rule("*"), deny("flights")), "trains")


def test_an_allow_of_write_includes_describe_and_a_deny_does_not() -> None:
    """READ, WRITE, DELETE and ALTER; for configs ALTER_CONFIGS."""
    for operation in (READ, WRITE, AclOperation.DELETE, AclOperation.ALTER):
        assert allows(authorizer(rule("t", operation)), "t", DESCRIBE)
        assert allows(authorizer(rule("t", DESCRIBE), deny("t", operation)), "t", DESCRIBE)
    assert not allows(authorizer(rule("t", AclOperation.CREATE)), "t", DESCRIBE)
    altering = authorizer(rule("t", AclOperation.ALTER_CONFIGS))
    assert allows(altering, "t", AclOperation.DESCRIBE_CONFIGS)
    assert not allows(altering, "t", DESCRIBE)


def test_all_covers_every_operation_and_a_host_only_itself() -> None:
    """An IPv6 address may be spelled as Java spells it."""
    here = authorizer(rule("t", AclOperation.ALL, host="10.0.0.1"))
    assert here.allows(ALICE, "10.0.0.1", AclOperation.ALTER_CONFIGS, TOPIC, "t")
    assert not here.allows(ALICE, "10.0.0.2", READ, TOPIC, "t")
    six = authorizer(rule("t", host="0:0:0:0:0:0:0:1"))
    assert six.allows(ALICE, "::1", READ, TOPIC, "t")


@pytest.mark.parametrize("client", ["127.0.4.1", "::ffff:127.0.4.1"])
@pytest.mark.parametrize(
    "host",
    ["127.0.4.1", "::ffff:127.0.4.1", "::ffff:7f00:401", "127.0.4.0/24", "::ffff:127.0.4.0/120"],
)
def test_an_ipv4_address_is_the_same_in_both_spellings(host: str, client: str) -> None:
    """As sockets that serve both families spell it, too; other addresses stay others."""
    here = authorizer(rule("t", host=host))
    assert here.allows(ALICE, client, READ, TOPIC, "t")
    for other in ("127.0.5.1", "::ffff:127.0.5.1", "::127.0.4.1", "fe80::1%eth0", ""):
        assert not here.allows(ALICE, other, READ, TOPIC, "t")


def test_every_user_means_users_of_all_types_and_one_user_only_itself() -> None:
    """`User:*`, as Kafka matches it."""
    assert allows(authorizer(rule("t", principal="User:*")), "t")
    assert not allows(authorizer(rule("t", principal="User:bob")), "t")
    assert not allows(authorizer(rule("t", principal="user:alice")), "t")


def test_super_users_are_denied_nothing() -> None:
    """Not even what a DENY for every user denies."""
    asked = Authorizer(
        parse_super_users("User:root; User:alice"),
        rules=AclRules([rule("t", permission=Permission.DENY, principal="User:*")]),
    )
    decision = asked.explain(ALICE, "h", READ, TOPIC, "t")
    assert (decision.allowed, decision.reason) == (True, RulingReason.SUPER_USER)
    assert not asked.allows(BOB, "h", READ, TOPIC, "t")


def test_allow_everyone_opens_resources_without_any_acl_only() -> None:
    """An ACL of another principal protects a resource from the rest."""
    asked = Authorizer(allow_everyone_if_no_acl=True, rules=AclRules([rule("t")]))
    assert asked.allows(BOB, "h", READ, TOPIC, "free")
    assert not asked.allows(BOB, "h", READ, TOPIC, "t")
    assert asked.allows(BOB, "h", READ, GROUP, "t")


def test_a_change_of_rules_holds_at_once() -> None:
    """Decisions that were remembered are forgotten, and the version grows."""
    asked = authorizer(rule("t"), rule("t", WRITE))
    assert allows(asked, "t")
    version = asked.version
    asked.set_pattern(ResourcePattern(TOPIC, "t"), [rule("t", WRITE)])
    assert not allows(asked, "t")
    assert asked.version > version


def test_removing_one_rule_leaves_its_siblings() -> None:
    """CVE-2024-27309: the other rules of a resource, a DENY among them, go on to hold."""
    asked = authorizer(rule("t"), deny("t", WRITE), rule("t", WRITE, principal="User:*"))
    asked.set_pattern(
        ResourcePattern(TOPIC, "t"), [deny("t", WRITE), rule("t", WRITE, principal="User:*")]
    )
    assert not allows(asked, "t", WRITE)
    assert asked.allows(BOB, "h", WRITE, TOPIC, "t")


def test_the_decision_names_its_rule() -> None:
    """A DENY first, then an ALLOW, else none."""
    allowed, denied = rule("t"), deny("t", WRITE)
    asked = authorizer(allowed, denied)
    assert asked.explain(ALICE, "h", READ, TOPIC, "t").acl == allowed
    assert asked.explain(ALICE, "h", WRITE, TOPIC, "t").acl == denied
    none = asked.explain(BOB, "h", WRITE, TOPIC, "t")
    assert (none.allowed, none.reason, none.acl) == (False, RulingReason.NO_RULE, None)


def test_a_principal_may_write_to_any_topic_unless_all_it_may_write_to_is_denied() -> None:
    """What InitProducerId of an idempotent producer needs (KIP-679)."""

    def any_topic(*acls: Acl) -> bool:
        return authorizer(*acls).allows_any(ALICE, "h", WRITE, TOPIC)

    assert any_topic(rule("t", WRITE))
    assert any_topic(rule("t", WRITE, kind=PREFIXED), deny("t", WRITE))
    assert not any_topic(rule("t", WRITE), deny("t", WRITE))
    assert not any_topic(rule("tt", WRITE), deny("t", WRITE, PREFIXED))
    assert not any_topic(rule("t", WRITE), deny("*", WRITE))
    assert not any_topic(rule("t", READ))


def test_memory_of_decisions_is_bounded() -> None:
    """A client that names ever new topics fills no memory."""
    asked = authorizer(rule("*"))
    for number in range(70_000):
        assert allows(asked, f"t{number}")
    assert len(asked._decided) <= 65_536


def test_10000_rules_cost_a_decision_the_few_that_apply() -> None:
    """The rules looked at are those of the resource's names and of the principal."""
    many = [rule(f"topic-{n}", principal=f"User:u{n}") for n in range(5000)]
    many += [rule("shared", principal=f"User:u{n}") for n in range(5000)]
    rules = AclRules([*many, rule("shared"), rule("sha", kind=PREFIXED)])
    found = [acl for section in rules.sections(TOPIC, "shared") for acl in section["User:alice"]]
    assert found == [rule("shared"), rule("sha", kind=PREFIXED)]


def test_filters_find_what_kafka_finds() -> None:
    """MATCH finds what protects a resource of that name; ANY a pattern of that name."""
    acls = [rule("flights"), rule("f", kind=PREFIXED), rule("*"), rule("trains")]

    def found(kind: PatternType, name: str | None = "flights") -> list[str]:
        wanted = AclFilter(TOPIC, name, kind)
        return [acl.pattern.name for acl in acls if wanted.matches(acl)]

    assert found(PatternType.MATCH) == ["flights", "f", "*"]
    assert found(PatternType.ANY) == ["flights"]
    assert found(PatternType.LITERAL) == ["flights"]
    assert found(PatternType.PREFIXED, "f") == ["f"]
    assert found(PatternType.PREFIXED) == []
    assert found(PatternType.ANY, None) == ["flights", "f", "*", "trains"]
    assert not AclFilter(host="h").matches(rule("t"))
    assert AclFilter(principal="User:alice", host="*", operation=READ).matches(rule("t"))


@pytest.mark.parametrize(
    "wrong",
    [
        Acl(ResourcePattern(AclResource.ANY, "t"), "User:a", "*", READ, Permission.ALLOW),
        Acl(ResourcePattern(TOPIC, "t", PatternType.MATCH), "User:a", "*", READ, Permission.ALLOW),
        Acl(ResourcePattern(TOPIC, ""), "User:a", "*", READ, Permission.ALLOW),
        Acl(ResourcePattern(TOPIC, "t"), "alice", "*", READ, Permission.ALLOW),
        Acl(ResourcePattern(TOPIC, "t"), "User:a", "*", AclOperation.ANY, Permission.ALLOW),
        Acl(ResourcePattern(TOPIC, "t"), "User:a", "*", READ, Permission.ANY),
        Acl(ResourcePattern(AclResource.CLUSTER, "mine"), "User:a", "*", READ, Permission.ALLOW),
    ],
)
def test_an_acl_that_kafka_refuses_is_refused(wrong: Acl) -> None:
    """INVALID_REQUEST, with what is wrong."""
    with pytest.raises(OttlaError) as caught:
        check_acl(wrong)
    assert caught.value.code is ErrorCode.INVALID_REQUEST


def test_a_principal_has_a_type_and_a_name() -> None:
    """Further colons belong to the name."""
    assert parse_principal("User:CN=a:b") == Principal("User", "CN=a:b")
    with pytest.raises(OttlaError, match="no colon"):
        parse_principal("alice")


def test_the_nodes_of_the_store_hold_every_acl() -> None:
    """Names are free text; a node that is no pattern's is none."""
    for name in ("flights", "a/b%c~d", "*", "..", "é ü"):
        for kind in (LITERAL, PREFIXED):
            pattern = ResourcePattern(AclResource.TRANSACTIONAL_ID, name, kind)
            path = acl_path(pattern)
            assert path.count("/") == 5
            assert pattern_of(path) == pattern
            acls = [Acl(pattern, "User:ü", "*", AclOperation.ALL, Permission.DENY)]
            assert decode_acls(path, pattern, encode_acls(acls)) == acls
    assert pattern_of("/config/acls/literal/Topic") is None
    assert pattern_of("/config/acls/odd/Topic/t") is None


def test_a_node_that_cannot_be_read_opens_nothing() -> None:
    """Its pattern denies every user; other patterns are as before."""
    pattern = ResourcePattern(TOPIC, "t")
    for data in (b"{", b"[]", b'{"acls":[{}]}', b'{"acls":[{"principal":"User:a","host":"*"}]}'):
        with pytest.raises(OttlaError):
            decode_acls("/config/acls/literal/Topic/t", pattern, data)
    asked = authorizer(rule("t", kind=PREFIXED), unreadable(pattern))
    assert not allows(asked, "t")
    assert allows(asked, "tt")


def test_long_names_are_decided_and_not_remembered() -> None:
    """A client that may do nothing can have decisions made about names of megabytes."""
    authorizer = Authorizer(rules=AclRules([rule("a", kind=PREFIXED)]))
    for _ in range(2):
        for name, allowed in (("a" * 301, True), ("b" * 301, False), ("a" * 300, True)):
            assert authorizer.allows(ALICE, "h", READ, TOPIC, name) is allowed
    assert [asked[-1] for asked in authorizer._decided] == ["a" * 300]
