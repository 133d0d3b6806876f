"""The enumerations of ACLs, numbered as in the protocol (KIP-140, KIP-290, KIP-373)."""

from enum import IntEnum


class AclResource(IntEnum):
    """The types of resources that ACLs protect."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    """How an ACL names resources; ANY and MATCH occur only in filters."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class AclOperation(IntEnum):
    """The operations on resources; an ACL with ALL covers each of them."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class Permission(IntEnum):
    """Whether an ACL allows or denies; ANY occurs only in filters."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


# The name of the one resource of type CLUSTER.
CLUSTER_NAME = "kafka-cluster"
# As the name of a literal pattern: all resources of the type. As a host: all hosts.
WILDCARD = "*"
# As the principal of an ACL: all users.
EVERY_USER = "User:*"


def title(name: str) -> str:
    """Return a word as kafka-acls and Kafka's ZooKeeper nodes spell it: `TransactionalId`."""
    return "".join(part.capitalize() for part in name.split("_"))
