"""Automatically created topics and internal topics: their settings and write permissions."""

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.settings import BrokerSettings
from ottla.broker.requests.request import RequestContext
from ottla.metadata.image import INTERNAL_TOPICS
from ottla.metadata.topic_plan import Registered, RequestedTopic, own_racks

CONSUMER_OFFSETS = "__consumer_offsets"
TRANSACTION_STATE = "__transaction_state"
SHARE_GROUP_STATE = "__share_group_state"
# The only client that may produce into internal topics (Kafka's name for its own tools).
_ADMIN_CLIENT_ID = "__admin_client"


def check_may_produce(topic: str, client_id: str | None) -> None:
    """Raise OttlaError (INVALID_TOPIC_EXCEPTION) if a client must not produce into `topic`."""
    if topic in INTERNAL_TOPICS and client_id != _ADMIN_CLIENT_ID:
        raise OttlaError(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"{topic} is written by coordinators only; produce into a topic of your own",
        )


def automatic_topic(name: str, settings: BrokerSettings, known: Registered) -> RequestedTopic:
    """Return the settings of a topic to create automatically; `known` has all brokers.

    Raises OttlaError(COORDINATOR_NOT_AVAILABLE) if the cluster has too few brokers, or with `cores`
    too few machines, for the configured replication factor, because an internal topic keeps its
    replication factor for ever.
    """
    if name == CONSUMER_OFFSETS:
        prefix, compression = "offsets.topic", "producer"
    elif name == TRANSACTION_STATE:
        prefix, compression = "transaction.state.log", "uncompressed"
    elif name == SHARE_GROUP_STATE:
        prefix, compression = "share.coordinator.state.topic", "uncompressed"
    else:
        return RequestedTopic(name)
    factor = _replicas(name, f"{prefix}.replication.factor", settings, known)
    configs = {
        "cleanup.policy": "compact",
        "compression.type": compression,
        "segment.bytes": str(settings.integer(f"{prefix}.segment.bytes")),
    }
    if name != CONSUMER_OFFSETS:
        configs["min.insync.replicas"] = str(min(settings.integer(f"{prefix}.min.isr"), factor))
    if name == SHARE_GROUP_STATE:
        # Compaction would remove snapshots, because later updates have the same key. So the share
        # coordinator deletes old records by offset.
        configs |= {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}
    return RequestedTopic(
        name,
        settings.integer(f"{prefix}.num.partitions"),
        factor,
        configs=configs,
    )


def _replicas(name: str, setting: str, settings: BrokerSettings, known: Registered) -> int:
    """Return the replication factor of an internal topic.

    If no factor is configured, it is the default, but at most the number of brokers or machines.
    """
    factor = settings.integer(setting)
    apart = settings.keeps_apart
    most = len(set(own_racks(known).values())) if apart else len(known)
    if factor <= most:
        return factor
    if setting not in settings.static:
        return most
    place = "machine" if apart else "broker"
    raise OttlaError(
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        f"{name} waits for {place}s: {setting} asks for {factor} replicas, and the cluster has "
        f"{most} {place}{'' if most == 1 else 's'}. Start more, or set it to {most} or leave "
        "it out.",
    )


# The setting of this broker that causes each error.
_SETTINGS = {
    ErrorCode.POLICY_VIOLATION: "num.partitions",
    ErrorCode.INVALID_PARTITIONS: "num.partitions",
    ErrorCode.INVALID_REPLICATION_FACTOR: "default.replication.factor",
}
# Errors that are logged elsewhere, or are no failures.
_LOGGED_BEFORE = (
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.TOPIC_ALREADY_EXISTS,
    ErrorCode.UNKNOWN_SERVER_ERROR,
)


def log_not_created(request: RequestContext, topic: str, error: OttlaError) -> None:
    """Log that a topic is not created, at intervals for each address, topic and error."""
    if error.code in _LOGGED_BEFORE:
        return
    client = request.connection

    def line() -> str:
        setting = _SETTINGS.get(error.code)
        remedy = (
            f"; change {setting} in this broker's server.properties, or create the topic with: "
            f"ottla topic create {topic}"
            if setting
            else ""
        )
        return (
            f"topic {topic} is not created automatically for {client.peer_host}:"
            f"{client.peer_port} (client id {request.client_id!r}): {error.code.name}, "
            f"{error.message}{remedy}"
        )

    client.refusals.log((client.peer_host, "auto-create", topic, error.code), line)
