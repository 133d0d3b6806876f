"""The active controller's view of the cluster."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from ottla.base.ids import BrokerId, TopicPartition
from ottla.controller.election import Rules, without
from ottla.metadata.image import NO_LEADER, BrokerImage, PartitionImage, TopicImage

RulesOf = Callable[[TopicImage], Rules]


class Context:
    """Brokers, topics and partitions as in the store; only the active controller changes them.

    Invariant: every state here was read from the store or written to it.
    """

    def __init__(self, rules_of: RulesOf) -> None:
        self.brokers: dict[BrokerId, BrokerImage] = {}
        self.topics: dict[str, TopicImage] = {}
        # Topics marked for deletion: hidden from clients, and without leaders.
        self.deleting: dict[str, None] = {}
        # Brokers in a controlled shutdown, with their epochs. They are alive, but not elected.
        self.stopping: dict[BrokerId, int] = {}
        # Registered brokers that the controller cannot reach. They are not elected.
        self.silent: dict[BrokerId, None] = {}
        # Replicas that their brokers could not open or had to stop using.
        self.offline: dict[tuple[TopicPartition, BrokerId], None] = {}
        self._rules_of = rules_of

    @property
    def live(self) -> Mapping[BrokerId, int]:
        """The registered brokers, with their epochs."""
        return {broker.id: broker.epoch for broker in self.brokers.values()}

    @property
    def staying(self) -> Mapping[BrokerId, int]:
        """Live brokers that are neither shutting down nor silent."""
        return without(self.live, {**self.stopping, **self.silent})

    def live_for(
        self, name: TopicPartition, live: Mapping[BrokerId, int]
    ) -> Mapping[BrokerId, int]:
        """Return the brokers in `live` that may lead a partition.

        Their replica must be online, and they may be neither shutting down nor silent. But a
        current leader that shuts down or is silent may stay leader.
        """
        if not self.offline and not self.stopping and not self.silent:
            return live
        partition = self.partition(name)
        leader = NO_LEADER
        if partition and live.get(partition.leader) == partition.leader_broker_epoch:
            leader = partition.leader
        return {
            broker: epoch
            for broker, epoch in live.items()
            if (name, broker) not in self.offline
            and (broker == leader or (broker not in self.stopping and broker not in self.silent))
        }

    def forget_registrations(self, served: Mapping[BrokerId, int]) -> None:
        """Remove the shutdowns and offline replicas of registrations that have ended.

        `served` holds the epochs of the brokers that senders send to. A broker with a newer epoch
        has opened its log directories again, so its replicas may be back online.
        """
        self.stopping = {
            broker: epoch
            for broker, epoch in self.stopping.items()
            if broker in self.brokers and self.brokers[broker].epoch == epoch
        }
        self.offline = {
            (name, broker): None
            for name, broker in self.offline
            if broker in self.brokers and self.brokers[broker].epoch == served.get(broker)
        }

    def partition(self, name: TopicPartition) -> PartitionImage | None:
        """Return a partition's state; None if it does not exist or is being deleted."""
        topic = self.topics.get(name.topic)
        if topic is None or name.topic in self.deleting:
            return None
        if not 0 <= name.partition < len(topic.partitions):
            return None
        return topic.partitions[name.partition]

    def rules(self, topic: str) -> Rules:
        """Return the election rules that follow from a topic's settings."""
        return self._rules_of(self.topics[topic])

    def names(self) -> Iterator[TopicPartition]:
        """Yield all partitions that are not being deleted."""
        for topic in self.topics.values():
            if topic.name not in self.deleting:
                for index in range(len(topic.partitions)):
                    yield TopicPartition(topic.name, index)

    def names_of(self, topic: str) -> list[TopicPartition]:
        """Return the partitions of one topic."""
        return [TopicPartition(topic, i) for i in range(len(self.topics[topic].partitions))]

    def hosted_by(self, brokers: Collection[BrokerId]) -> list[TopicPartition]:
        """Return the partitions with a replica on one of `brokers`."""
        return [
            name
            for name in self.names()
            if any(
                b in brokers for b in self.topics[name.topic].partitions[name.partition].replicas
            )
        ]

    def led_by(
        self, brokers: Collection[BrokerId], names: Iterable[TopicPartition]
    ) -> list[TopicPartition]:
        """Return those of the partitions in `names` that one of `brokers` leads."""
        states = ((name, self.partition(name)) for name in names)
        return [name for name, state in states if state is not None and state.leader in brokers]

    def set_partitions(self, states: Iterable[tuple[TopicPartition, PartitionImage]]) -> None:
        """Replace the states of partitions whose topics exist."""
        by_topic: dict[str, dict[int, PartitionImage]] = {}
        for name, state in states:
            by_topic.setdefault(name.topic, {})[name.partition] = state
        for topic_name, changed in by_topic.items():
            topic = self.topics.get(topic_name)
            if topic is None:
                continue
            partitions = list(topic.partitions)
            for index, state in changed.items():
                partitions[index] = state
            self.topics[topic_name] = replace(topic, partitions=tuple(partitions))
