"""The reports of a sender about its broker."""

from typing import Protocol

from ottla.base.ids import TopicPartition
from ottla.metadata.image import BrokerImage


class Reports(Protocol):
    """Receives a sender's reports; `BrokerReports` implements it."""

    def deposed(self) -> None:
        """A broker has seen a newer controller epoch."""

    def deleted(self, broker: BrokerImage, names: list[TopicPartition]) -> None:
        """A broker has deleted replicas."""

    def refused(self, broker: BrokerImage) -> None:
        """A broker's address refuses connections."""

    def sending(self, broker: BrokerImage) -> None:
        """A request is on its way to a broker."""

    def answered(self, broker: BrokerImage) -> None:
        """A broker has answered, with an error or without."""

    def failed(self, broker: BrokerImage, names: list[TopicPartition]) -> None:
        """A broker cannot serve its replicas of these partitions."""
