"""The cluster as one immutable value: brokers, topics, partitions, settings.

Derived from the store and replaced as a whole, so that a request sees one state from its first
line to its last. Every `with_…` method returns a new image that shares all unchanged parts.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import NamedTuple

from ottla.base.ids import BrokerId, TopicId
from ottla.metadata.features import INITIAL

_NOTHING: Mapping[str, str] = MappingProxyType({})

NO_LEADER = BrokerId(-1)
# The key of the settings that apply to all brokers.
ALL_BROKERS = "<default>"

INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})

# The security protocols of listeners, in the order of their numbers in inter-broker messages.
PROTOCOL_NAMES = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
PROTOCOL_NUMBERS = {name: number for number, name in enumerate(PROTOCOL_NAMES)}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The address of a broker's listener, and its security protocol."""

    host: str
    port: int
    protocol: str = "PLAINTEXT"


@dataclass(frozen=True, slots=True)
class BrokerImage:
    """A live broker. `endpoints` are by listener name."""

    id: BrokerId
    endpoints: Mapping[str, Endpoint]
    rack: str | None = None
    epoch: int = 0


class PartitionImage(NamedTuple):
    """A partition's replicas, ISR, and leader with its epoch.

    It is a tuple because brokers create several for each partition, and creating a dataclass takes
    4 times as long.
    """

    # Invariant: isr is a subset of replicas; leader is in isr or NO_LEADER; elr and isr are
    # disjoint.
    leader: BrokerId
    leader_epoch: int
    replicas: tuple[BrokerId, ...]
    isr: tuple[BrokerId, ...]
    # Version of the partition's state in the store, for compare-and-set.
    version: int = 0
    # Replicas outside the ISR that are known to hold all committed records (KIP-966).
    elr: tuple[BrokerId, ...] = ()
    # The last members of ISR and ELR, before both became empty.
    last_known_elr: tuple[BrokerId, ...] = ()
    # Identifies the write of this state, so that its writer recognises it after an unknown outcome
    # (S15).
    nonce: int = 0
    # The leader's broker epoch at its election; if its present epoch differs, it has restarted.
    leader_broker_epoch: int = 0
    # The leader epoch of the last unclean election; -1 for none.
    unclean_epoch: int = -1
    # The reassignment in progress (KIP-455). Both lists are in `replicas` until its end.
    adding: tuple[BrokerId, ...] = ()
    removing: tuple[BrokerId, ...] = ()

    @property
    def is_moving(self) -> bool:
        """Whether a reassignment is in progress."""
        return bool(self.adding or self.removing)


@dataclass(frozen=True, slots=True)
class TopicImage:
    """A topic; `partitions` is indexed by partition number."""

    name: str
    id: TopicId
    partitions: tuple[PartitionImage, ...]
    # The topic's own settings, as text; validated before they were stored.
    configs: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    # Version of the topic's node in the store, for compare-and-set.
    version: int = 0

    @property
    def is_internal(self) -> bool:
        return self.name in INTERNAL_TOPICS

    @property
    def replication_factor(self) -> int:
        return len(self.partitions[0].replicas)


@dataclass(frozen=True, slots=True)
class ClusterImage:
    """A broker's view of its cluster."""

    cluster_id: str
    controller_id: BrokerId = NO_LEADER
    brokers: Mapping[BrokerId, BrokerImage] = field(default_factory=dict)
    topics: Mapping[str, TopicImage] = field(default_factory=dict)
    # Invariant: holds exactly the topics of `topics`.
    topics_by_id: Mapping[TopicId, TopicImage] = field(default_factory=dict)
    # Settings changed at runtime: by broker id as text, or ALL_BROKERS.
    broker_configs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    group_configs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    # Feature levels by name, and the number of the latest change of them (KIP-584).
    features: Mapping[str, int] = field(default_factory=lambda: INITIAL)
    features_epoch: int = 1
    # Subscriptions to clients' metrics (KIP-714), by name.
    client_metrics: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def topic(self, name: str) -> TopicImage | None:
        return self.topics.get(name)

    def topic_by_id(self, topic_id: TopicId) -> TopicImage | None:
        return self.topics_by_id.get(topic_id)

    def partition(self, topic: str, index: int) -> PartitionImage | None:
        """The partition; None if the topic or the partition does not exist."""
        image = self.topics.get(topic)
        if image is None or not 0 <= index < len(image.partitions):
            return None
        return image.partitions[index]

    def with_topic(self, topic: TopicImage) -> "ClusterImage":
        """Add a topic, or replace the topic with the same name."""
        topics_by_id = dict(self.topics_by_id)
        before = self.topics.get(topic.name)
        if before is not None:
            del topics_by_id[before.id]
        topics_by_id[topic.id] = topic
        return replace(self, topics={**self.topics, topic.name: topic}, topics_by_id=topics_by_id)

    def with_broker(self, broker: BrokerImage) -> "ClusterImage":
        """Add a broker, or replace the broker with the same id."""
        return replace(self, brokers={**self.brokers, broker.id: broker})

    def with_broker_configs(self, broker: str, configs: Mapping[str, str]) -> "ClusterImage":
        """Replace the settings of one broker, or of ALL_BROKERS."""
        return replace(self, broker_configs={**self.broker_configs, broker: configs})

    def with_group_configs(self, group: str, configs: Mapping[str, str]) -> "ClusterImage":
        """Replace the settings of one group."""
        return replace(self, group_configs={**self.group_configs, group: configs})

    def with_features(self, levels: Mapping[str, int], epoch: int) -> "ClusterImage":
        """Replace the levels of all features."""
        return replace(self, features=levels, features_epoch=epoch)

    def with_client_metrics(self, name: str, configs: Mapping[str, str]) -> "ClusterImage":
        """Replace the settings of one subscription to clients' metrics."""
        return replace(self, client_metrics={**self.client_metrics, name: configs})
