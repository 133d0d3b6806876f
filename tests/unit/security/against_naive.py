"""Random rules and requests: the authorizer against an evaluation that looks at every ACL.

By hand: `python -m tests.unit.security.against_naive --count 1000000 --seed 1`.
"""

import argparse
import random
from collections.abc import Iterator
from itertools import pairwise

from ottla.security.acl import Acl, ResourcePattern
from ottla.security.authorizer import Authorizer
from ottla.security.names import AclOperation, AclResource, PatternType, Permission
from ottla.security.principal import Principal
from ottla.security.rules import AclRules

OPERATIONS = tuple(each for each in AclOperation if each > AclOperation.ANY)
KINDS = (AclResource.TOPIC, AclResource.GROUP)
NAMES = ("a", "ab", "abc", "abd", "b", "ba", "hardcode", "*", "*a")
PRINCIPALS = ("User:alice", "User:bob", "User:*", "Team:alice")
HOSTS = ("*", "10.0.0.1", "::1", "0:0:0:0:0:0:0:1", "10.0.0.1/32", "10.0.0.7/24", "::/0", "x/8")
ADDRESSES = ("10.0.0.1", "10.0.0.2", "::1")
# Other hosts of an ACL that mean an address.
_WIDER = {
    "10.0.0.1": {"10.0.0.1/32", "10.0.0.7/24"},
    "10.0.0.2": {"10.0.0.7/24"},
    "::1": {"0:0:0:0:0:0:0:1", "::/0"},
}
_REQUESTS_PER_SET = 50


def naive(
    acls: list[Acl],
    principal: Principal,
    host: str,
    operation: AclOperation,
    kind: AclResource,
    name: str,
    *,
    open_without_acl: bool,
) -> bool:
    """Kafka's documented rules, one ACL after the other."""
    allowed = protected = False
    for acl in acls:
        if acl.pattern.resource_type is not kind:
            continue
        if acl.pattern.pattern_type is PatternType.PREFIXED:
            if not name.startswith(acl.pattern.name):
                continue
        elif acl.pattern.name not in ("*", name):
            continue
        protected = True
        if acl.principal not in (f"{principal.type}:{principal.name}", "User:*"):
            continue
        here = {"*", host} | _WIDER[host]
        if acl.host not in here:
            continue
        if operation not in _meant(acl):
            continue
        if acl.permission is Permission.DENY:
            return False
        allowed = True
    return allowed or (open_without_acl and not protected)


def _meant(acl: Acl) -> set[AclOperation]:
    meant = {acl.operation}
    if acl.operation is AclOperation.ALL:
        meant = set(OPERATIONS)
    elif acl.permission is Permission.ALLOW:
        if acl.operation.name in ("READ", "WRITE", "DELETE", "ALTER"):
            meant.add(AclOperation.DESCRIBE)
        if acl.operation is AclOperation.ALTER_CONFIGS:
            meant.add(AclOperation.DESCRIBE_CONFIGS)
    return meant


def naive_any(
    acls: list[Acl],
    principal: Principal,
    host: str,
    operation: AclOperation,
    kind: AclResource,
    *,
    open_without_acl: bool,
) -> bool:
    """Whether a name exists that the rules open: one allowed literally, or under a prefix.

    As in Kafka, an ALLOW counts unless a DENY covers all that it opens, implications do not count
    for either, and a DENY of the wildcard wins.
    """
    if naive(acls, principal, host, operation, kind, "hardcode", open_without_acl=open_without_acl):
        return True
    here = [
        acl
        for acl in acls
        if acl.pattern.resource_type is kind
        and acl.operation in (operation, AclOperation.ALL)
        and acl.principal in (f"{principal.type}:{principal.name}", "User:*")
        and acl.host in {"*", host} | _WIDER[host]
    ]
    deny = [acl.pattern for acl in here if acl.permission is Permission.DENY]
    allow = [acl.pattern for acl in here if acl.permission is Permission.ALLOW]
    if any(each.pattern_type is PatternType.LITERAL and each.name == "*" for each in deny):
        return False
    if any(each.pattern_type is PatternType.LITERAL and each.name == "*" for each in allow):
        return True
    for each in allow:
        covered = each in deny and each.pattern_type is PatternType.LITERAL
        for denied in deny:
            if denied.pattern_type is PatternType.PREFIXED and each.name.startswith(denied.name):
                covered = True
        if not covered:
            return True
    return False


def random_acl(rng: random.Random) -> Acl:
    kind = PatternType.PREFIXED if rng.random() < 0.4 else PatternType.LITERAL
    return Acl(
        ResourcePattern(rng.choice(KINDS), rng.choice(NAMES), kind),
        rng.choice(PRINCIPALS),
        rng.choice(HOSTS),
        rng.choice(OPERATIONS),
        rng.choice((Permission.ALLOW, Permission.ALLOW, Permission.DENY)),
    )


def changes(rng: random.Random) -> Iterator[list[Acl]]:
    """Sets of ACLs, each made from the one before by adding or removing some."""
    acls: list[Acl] = []
    while True:
        if rng.random() < 0.1:
            acls = []
        acls = [acl for acl in acls if rng.random() < 0.8]
        acls = list(dict.fromkeys([*acls, *(random_acl(rng) for _ in range(rng.randint(0, 6)))]))
        yield acls


def compare(count: int, seed: int) -> list[str]:
    """Ask `count` questions; the questions that the two answer differently."""
    rng = random.Random(seed)
    different: list[str] = []
    asked = 0
    is_open = rng.random() < 0.5
    authorizer = Authorizer(allow_everyone_if_no_acl=is_open)
    for before, acls in pairwise(changes(rng)):
        if rng.random() < 0.1:
            is_open = not is_open
            authorizer = Authorizer(allow_everyone_if_no_acl=is_open, rules=AclRules(acls))
        for pattern in {acl.pattern for acl in (*before, *acls)}:
            authorizer.set_pattern(pattern, [acl for acl in acls if acl.pattern == pattern])
        for _ in range(_REQUESTS_PER_SET):
            principal = Principal("User", rng.choice(("alice", "bob", "carol")))
            host, operation = rng.choice(ADDRESSES), rng.choice(OPERATIONS)
            kind, name = rng.choice(KINDS), rng.choice(NAMES)
            if rng.random() < 0.2:
                found = authorizer.allows_any(principal, host, operation, kind)
                expected = naive_any(
                    acls, principal, host, operation, kind, open_without_acl=is_open
                )
                name = "(any)"
            else:
                found = authorizer.allows(principal, host, operation, kind, name)
                expected = naive(
                    acls, principal, host, operation, kind, name, open_without_acl=is_open
                )
            if found is not expected:
                question = f"{principal} {host} {operation.name} {kind.name} {name}"
                different.append(f"{question}: {found}; open={is_open} {[str(a) for a in acls]}")
            asked += 1
            if asked >= count:
                return different
    return different


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    different = compare(args.count, args.seed)
    for line in different[:20]:
        print(line)  # noqa: T201  # A command by hand.
    print(f"{args.count} cases, seed {args.seed}: {len(different)} different")  # noqa: T201
    raise SystemExit(bool(different))


if __name__ == "__main__":
    main()
