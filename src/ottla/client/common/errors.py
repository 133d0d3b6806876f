"""The errors of clients, each with cause and remedy."""

import shlex
from collections.abc import Iterable
from difflib import get_close_matches
from typing import NamedTuple

from ottla.base.errors import ErrorCode, OttlaError
from ottla.network.exchange import Failure

_KINDS = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "topic",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "group",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "transactional-id",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "cluster",
}


class Needs(NamedTuple):
    """An operation on a resource, in the words of `ottla acl add`."""

    operation: str
    kind: str  # topic, group, transactional-id or cluster.
    name: str = ""


_NAME = "User:NAME"
_IN_THE_LOG = " (the broker's log has the principal)"
# Errors of a login, and errors decided by ACLs.
_OF_ACCESS = frozenset({*_KINDS, ErrorCode.SASL_AUTHENTICATION_FAILED})


class LoginName(NamedTuple):
    """The identity that brokers see, for messages; contains no secret."""

    words: str = "does not log in"
    principal: str | None = None  # None if the client does not know its principal.
    file: str | None = None  # The file with its settings; None if the program passed them.


def with_login(code: ErrorCode, message: str, login: LoginName, host: str) -> str | None:
    """Return the message of a refusal with the login added; None for other errors."""
    if code not in _OF_ACCESS:
        return None
    if login.principal is not None:
        message = message.replace(_NAME, shlex.quote(login.principal)).replace(_IN_THE_LOG, "")
    by = "the settings of its program" if login.file is None else f"the settings in {login.file}"
    return f"{message}. On {host} this client {login.words}, by {by}"


def remedy_of(code: ErrorCode, needed: Iterable[Needs]) -> str | None:
    """Return how to allow what `code` denies; None for other errors."""
    kind = _KINDS.get(code)
    for one in needed:
        if one.kind == kind:
            resource = f"{one.kind}:{one.name}" if one.name else one.kind
            return f"allow it: ottla acl add {_NAME} {one.operation} {resource}{_IN_THE_LOG}"
    return None


_REMEDIES = {
    ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED: (
        "tokens are off: set delegation.token.secret.key, the same on all brokers, and restart them"
    ),
    ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: (
        "log in by a password or a certificate over SSL or SASL, not by a token"
    ),
    ErrorCode.OFFSET_OUT_OF_RANGE: "ask `beginning_offsets` and `end_offsets` what the log holds",
    ErrorCode.CORRUPT_MESSAGE: "the batch was damaged on its way or in the log",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "create the topic first, or check its name",
    ErrorCode.LEADER_NOT_AVAILABLE: "the partition is electing a leader; try again shortly",
    ErrorCode.NOT_LEADER_OR_FOLLOWER: "leadership has moved; metadata is asked for again",
    ErrorCode.REQUEST_TIMED_OUT: "the broker is slow or its followers are; raise the timeout",
    ErrorCode.MESSAGE_TOO_LARGE: "raise the topic's max.message.bytes or lower batch_size",
    ErrorCode.RECORD_LIST_TOO_LARGE: "lower batch_size, or raise the topic's segment.bytes",
    ErrorCode.NOT_ENOUGH_REPLICAS: "bring brokers back, or lower min.insync.replicas",
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: "bring brokers back, or lower min.insync.replicas",
    ErrorCode.INVALID_TOPIC_EXCEPTION: "names hold letters, digits, '.', '_' and '-', up to 249",
    ErrorCode.INVALID_REQUIRED_ACKS: "acks is 0, 1 or 'all'",
    ErrorCode.INVALID_GROUP_ID: "give the consumer a non-empty group_id",
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL: "all members of a group need one assignor in common",
    ErrorCode.INVALID_SESSION_TIMEOUT: (
        "keep session_timeout_ms between the broker's group.min.session.timeout.ms and "
        "group.max.session.timeout.ms"
    ),
    ErrorCode.UNSUPPORTED_VERSION: "the broker is too old or too new for this call",
    ErrorCode.INVALID_TIMESTAMP: "the topic's message.timestamp limits refuse this time",
    ErrorCode.INVALID_RECORD: "a compacted topic needs a key on every record",
    ErrorCode.TOPIC_ALREADY_EXISTS: "choose another name, or use the topic as it is",
    ErrorCode.INVALID_PARTITIONS: "the number of partitions can only grow, and is at least 1",
    ErrorCode.INVALID_REPLICATION_FACTOR: "it is at least 1, and at most the registered brokers",
    ErrorCode.INVALID_CONFIG: "check the setting's name and value",
    ErrorCode.NON_EMPTY_GROUP: "stop the members of the group first",
    ErrorCode.GROUP_ID_NOT_FOUND: "no such group: nothing was committed under this name",
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: "stop the members that read the topic first",
    ErrorCode.FENCED_INSTANCE_ID: "another consumer runs under the same group_instance_id",
    ErrorCode.UNKNOWN_MEMBER_ID: "the group has dropped this member; poll more often",
    ErrorCode.ILLEGAL_GENERATION: "the group has moved on; its records go to another member",
    ErrorCode.REBALANCE_IN_PROGRESS: "poll again, so that this member joins the new generation",
    ErrorCode.UNSUPPORTED_COMPRESSION_TYPE: "use none, gzip, snappy, lz4 or zstd",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "ask for rights on the topic",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "ask for rights on the group",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "ask for rights on the cluster",
    ErrorCode.POLICY_VIOLATION: "the cluster's policy refuses this",
    ErrorCode.INVALID_PRODUCER_EPOCH: "a newer producer with this id has taken over",
    ErrorCode.PRODUCER_FENCED: "a newer producer with this id has taken over",
    ErrorCode.INVALID_TXN_STATE: "the transaction is not in a state for this; begin with a new one",
    ErrorCode.INVALID_TRANSACTION_TIMEOUT: (
        "lower transaction_timeout_ms, or raise the broker's transaction.max.timeout.ms"
    ),
    ErrorCode.CONCURRENT_TRANSACTIONS: "the transaction before is still being ended; try again",
    ErrorCode.INVALID_PRODUCER_ID_MAPPING: (
        "the coordinator has forgotten this id, as it was not used for long; make a new producer"
    ),
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "ask for rights on the transactional id",
    ErrorCode.TRANSACTION_ABORTABLE: "abort the transaction, then do it again",
    ErrorCode.KAFKA_STORAGE_ERROR: "the broker's disk is full or has failed; see its log",
    ErrorCode.TOPIC_DELETION_DISABLED: "set delete.topic.enable=true on the brokers",
}


def code_of(number: int) -> ErrorCode:
    """Return the error with that number; unknown numbers become UNKNOWN_SERVER_ERROR."""
    try:
        return ErrorCode(number)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR


class ClientError(OttlaError):
    """Base of every error of `ottla.client`."""


class BrokerRefused(ClientError):
    """A broker answered with an error code."""


class ConnectionFailed(ClientError):
    """No connection to an address could be opened, or the connection broke.

    Requests in flight may or may not have been executed.
    """

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.NETWORK_EXCEPTION, message)


class BootstrapFailed(ClientError):
    """No bootstrap address has answered within `bootstrap_timeout_ms`."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.BROKER_NOT_AVAILABLE, message)


class CallbackFailed(ClientError):
    """A callback of the user raised an error, which is the cause of this one."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.INVALID_REQUEST, message)


class RequestTimedOut(ClientError):
    """No answer within the time allowed."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.REQUEST_TIMED_OUT, message)


def ended(failure: Failure) -> ConnectionFailed | RequestTimedOut:
    """Return the error for a request on an ended connection.

    Each request gets a new error, because the traceback of a shared one would grow.
    """
    if failure.code is ErrorCode.REQUEST_TIMED_OUT:
        return RequestTimedOut(failure.message)
    return ConnectionFailed(failure.message)


class UnsupportedByBroker(ClientError):
    """Broker and client have no version of an API in common."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.UNSUPPORTED_VERSION, message)


class UnknownTopic(ClientError):
    """The cluster has no such topic or partition."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)


class TopicRecreated(ClientError):
    """The topic requested by id was deleted; a new topic has its name now."""

    def __init__(self, topic: str, was: object, now: object) -> None:
        super().__init__(
            ErrorCode.UNKNOWN_TOPIC_ID,
            f"topic {topic} was deleted and created anew meanwhile (its id was {was} and is {now})",
        )


class DeliveryFailed(ClientError):
    """The producer gave up sending records: the code says why the last attempt failed."""


class OffsetOutOfRange(ClientError):
    """A position is outside of the log, and no reset rule is set."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.OFFSET_OUT_OF_RANGE, message)


class CommitFailed(ClientError):
    """The group has rebalanced: the partitions now belong to other members."""


class ProducerFenced(ClientError):
    """Another producer uses this transactional id now, or the coordinator ended the transaction.

    This producer cannot be used any more: close it.
    """

    def __init__(self, code: ErrorCode, transactional_id: str, doing: str) -> None:
        super().__init__(
            code,
            f"the producer {transactional_id!r} may not {doing}: another one with this id has "
            "taken over, or its transaction took longer than transaction_timeout_ms and was "
            "aborted; close it, and where no other runs begin with a new one at the committed "
            "offsets",
        )


class TransactionFailed(ClientError):
    """The open transaction cannot be committed any more: abort it, then repeat it."""


class ClientClosed(ClientError):
    """The client was closed, or its loop has ended."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.INVALID_REQUEST, message)


def refused(
    number: int, doing: str, detail: str | None = None, needed: Iterable[Needs] = ()
) -> BrokerRefused:
    """Return the error for a code in an answer; `doing` continues "the broker refused to …".

    `needed` are the ACLs that the request requires.
    """
    code = code_of(number)
    remedy = remedy_for(code, needed)
    said = f" ({detail})" if detail else ""
    if code is ErrorCode.UNKNOWN_SERVER_ERROR and number != -1:
        said += f" (error {number}, newer than this client)"
    ending = f"; {remedy}" if remedy else ""
    return BrokerRefused(code, f"the broker refused to {doing}{said}{ending}")


def check(number: int, doing: str, detail: str | None = None, needed: Iterable[Needs] = ()) -> None:
    """Raise `BrokerRefused` unless `number` is 0."""
    if number:
        raise refused(number, doing, detail, needed)


def remedy_for(code: ErrorCode, needed: Iterable[Needs] = ()) -> str:
    """Return what a user can do about `code`; empty if nothing is known."""
    return remedy_of(code, needed) or _REMEDIES.get(code, "")


def unknown_topic(name: str, existing: Iterable[str]) -> UnknownTopic:
    """Return the error for a missing topic, naming topics with similar names."""
    near = get_close_matches(name, list(existing), n=3, cutoff=0.6)
    hint = f"did you mean {' or '.join(near)}?" if near else "list the topics to see what exists"
    return UnknownTopic(f"there is no topic {name!r}; {hint}")


def connection_refused(
    host: str, port: int, why: str, *, advertised_by: str | None
) -> ConnectionFailed:
    """Return the error for an address where no broker answers."""
    if advertised_by is None:
        advice = f"is a broker running there? Check with `nc -vz {host} {port}`"
    else:
        advice = (
            f"the broker at {advertised_by} advertises this address; if it cannot be reached "
            "from here, set advertised.listeners on the broker to one that can"
        )
    return ConnectionFailed(f"cannot connect to {host}:{port} ({why}); {advice}")
