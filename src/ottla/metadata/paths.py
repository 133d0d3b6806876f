"""The paths of the store's nodes, as in Kafka's design papers.

Each function returns the path of the node that its docstring describes.
"""

from uuid import UUID

BROKERS = "/brokers"
BROKER_IDS = "/brokers/ids"
TOPICS = "/brokers/topics"
CLUSTER_ID = "/cluster/id"
CLUSTER_SECRET = "/cluster/secret"
CONTROLLER = "/controller"
CONTROLLER_EPOCH = "/controller_epoch"
DELETE_TOPICS = "/admin/delete_topics"
REASSIGN_PARTITIONS = "/admin/reassign_partitions"
PREFERRED_ELECTION = "/admin/preferred_replica_election"
# Sequence nodes: partitions whose states leaders wrote, or that were added to a topic.
ISR_CHANGES = "/isr_change_notification"
# Sequence nodes: brokers whose replicas went offline (Kafka's path and JSON).
LOG_DIR_EVENTS = "/log_dir_event_notification"
# Brokers that may have lost records in an unclean stop, until the controller has handled that.
UNCLEAN_STOPS = "/brokers/unclean"
BROKER_EPOCHS = "/brokers/epochs"
# One node per existing topic, checked so that no late write reaches a new topic of the same name
# (S15).
TOPIC_IDS = "/brokers/topic_ids"
CONFIG_TOPICS = "/config/topics"
CONFIG_BROKERS = "/config/brokers"
CONFIG_GROUPS = "/config/groups"
CONFIG_CLIENT_METRICS = "/config/client-metrics"
CONFIG_FEATURES = "/config/features"
CONFIG_CHANGES = "/config/changes"
# The last block of producer ids that was handed out.
PRODUCER_IDS = "/latest_producer_id_block"
# What `ottla undo` can undo: deleted topics by their ids, and sequence nodes of changes.
TRASH = "/ottla/trash"
CHANGES = "/ottla/changes"

# Nodes that only brokers may read: secrets, and credentials from which logins can be forged or
# guessed.
SENSITIVE = (CLUSTER_SECRET, "/config/users", CONFIG_BROKERS, "/delegation_token")

# The nodes that must exist before anything else is written.
FOUNDATIONS = (
    BROKER_IDS,
    BROKER_EPOCHS,
    UNCLEAN_STOPS,
    TOPICS,
    TOPIC_IDS,
    # The version of this node is the controller epoch: each new controller sets it once.
    CONTROLLER_EPOCH,
    ISR_CHANGES,
    LOG_DIR_EVENTS,
    "/cluster",
    DELETE_TOPICS,
    CONFIG_TOPICS,
    CONFIG_BROKERS,
    CONFIG_GROUPS,
    CONFIG_CLIENT_METRICS,
    CONFIG_CHANGES,
    TRASH,
    CHANGES,
    "/config/clients",
    "/config/users",
)


def broker(broker_id: int) -> str:
    """The ephemeral node of a live broker."""
    return f"{BROKER_IDS}/{broker_id}"


def broker_epoch(broker_id: int) -> str:
    """A node that each registration sets once: its version + 1 is the broker epoch."""
    return f"{BROKER_EPOCHS}/{broker_id}"


def unclean_stop(broker_id: int) -> str:
    """A mark of an unclean stop, from the next registration until the controller handled it."""
    return f"{UNCLEAN_STOPS}/{broker_id}"


def topic_mark(topic_id: UUID) -> str:
    """A node that exists as long as the topic with this id."""
    return f"{TOPIC_IDS}/{topic_id}"


def topic(name: str) -> str:
    """A topic's id and replica lists."""
    return f"{TOPICS}/{name}"


def partitions(name: str) -> str:
    """The parent of the partitions of a topic."""
    return f"{TOPICS}/{name}/partitions"


def partition(name: str, index: int) -> str:
    """The parent of the state of a partition."""
    return f"{TOPICS}/{name}/partitions/{index}"


def partition_state(name: str, index: int) -> str:
    """Leader, leader epoch and in-sync replicas of a partition."""
    return f"{TOPICS}/{name}/partitions/{index}/state"


def topic_config(name: str) -> str:
    """A topic's own settings."""
    return f"{CONFIG_TOPICS}/{name}"


def topic_deletion(name: str) -> str:
    """A node that exists while a topic is being deleted."""
    return f"{DELETE_TOPICS}/{name}"


def deleted_topic(topic_id: UUID) -> str:
    """A deleted topic whose records are still in the trash of its brokers."""
    return f"{TRASH}/{topic_id}"


def broker_config(broker: str) -> str:
    """The dynamic settings of one broker (its id as text) or of all (`<default>`)."""
    return f"{CONFIG_BROKERS}/{broker}"


def group_config(group: str) -> str:
    """A group's own settings. Group ids are free text, so `/` and `%` are escaped."""
    return f"{CONFIG_GROUPS}/{_escaped(group)}"


def client_metrics_config(subscription: str) -> str:
    """The settings of a subscription to clients' metrics. Its name is escaped like a group id."""
    return f"{CONFIG_CLIENT_METRICS}/{_escaped(subscription)}"


def _escaped(name: str) -> str:
    return name.replace("%", "%25").replace("/", "%2F")


def name_of(node: str) -> str:
    """The group or subscription whose settings node is named `node`."""
    return node.replace("%2F", "/").replace("%25", "%")
