"""What the controller hears of brokers while it tells them things."""

from ottla.base.ids import TopicPartition
from ottla.metadata.image import BrokerImage


class Reports:
    """What a sender tells the office. The office replaces these with its own."""

    def deposed(self) -> None:
        """A broker knows a later controller."""

    def deleted(self, broker: BrokerImage, names: list[TopicPartition]) -> None:
        """A broker has deleted replicas."""

    def refused(self, broker: BrokerImage) -> None:
        """Nobody listens any more where a broker was."""

    def sending(self, broker: BrokerImage) -> None:
        """Something is on its way to a broker."""

    def answered(self, broker: BrokerImage) -> None:
        """A broker has answered, whatever it was."""

    def failed(self, broker: BrokerImage, names: list[TopicPartition]) -> None:
        """A broker cannot serve its replicas of these partitions."""
