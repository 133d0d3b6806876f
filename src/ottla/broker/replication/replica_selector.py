"""Sends consumers to a replica in their own rack (KIP-392), if `replica.selector.class` is set.

Kafka's class is recognised by its name. It selects the in-sync replica in the consumer's rack with
the highest log end offset, or the leader if there is none.
"""

from ottla.base.errors import ErrorCode
from ottla.base.ids import BrokerId
from ottla.broker.fetch.read import Read
from ottla.broker.partitions.partition import Partition
from ottla.broker.runtime.view import ClusterView

RACK_AWARE = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


class RackAwareSelector:
    """Redirects consumers to a replica in their own rack."""

    def __init__(self, view: ClusterView) -> None:
        self._view = view

    def point(self, found: Read, rack: str) -> None:
        """Replace records in the answer with the id of a nearer replica that has them."""
        for partition, (_, answer) in zip(found.readable, found.answers, strict=True):
            if partition is None or answer.error_code != ErrorCode.NONE:
                continue
            nearer = self._nearer(partition, rack, found.offsets[partition])
            if nearer is not None:
                answer.preferred_read_replica = nearer
                answer.records = b""
                found.urgent = True

    def _nearer(self, partition: Partition, rack: str, offset: int) -> BrokerId | None:
        """Return a replica in `rack` that can serve `offset`; None to read from the leader."""
        leader = partition.leader
        if leader is None:
            return None
        brokers = self._view.image.brokers
        own = brokers.get(leader.term.broker_id)
        if own is not None and own.rack == rack:
            return None
        for broker_id in leader.term.readable_replicas(offset):
            broker = brokers.get(broker_id)
            if broker_id != leader.term.broker_id and broker is not None and broker.rack == rack:
                return broker_id
        return None
