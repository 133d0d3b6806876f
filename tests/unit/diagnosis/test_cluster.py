"""What each broker leads and follows, and which one is controller."""

from ottla.base.ids import TopicPartition
from ottla.client.admin.cluster import ClusterDescription
from ottla.client.admin.partitions import PartitionStatus
from ottla.client.connection.view import NO_LEADER, Address, BrokerDescription
from ottla.diagnosis.cluster import BrokerLoad, broker_loads, live_controller


def cluster(*live: int, controller: int = 1) -> ClusterDescription:
    brokers = tuple(
        BrokerDescription(broker_id, Address("h", 9000 + broker_id), f"r{broker_id}")
        for broker_id in live
    )
    return ClusterDescription("c", controller, brokers)


def standing(
    index: int, leader: int, replicas: tuple[int, ...], isr: tuple[int, ...]
) -> PartitionStatus:
    return PartitionStatus(TopicPartition("t", index), leader, 0, replicas, isr, 1)


def test_the_load_of_a_broker_is_what_it_leads_and_follows() -> None:
    """Of a broker that is down, too, as long as it has replicas."""
    standings = [
        standing(0, 1, (1, 2, 3), (1, 2)),
        standing(1, 2, (2, 1), (2, 1)),
        standing(2, NO_LEADER, (3,), (3,)),
    ]
    assert broker_loads(cluster(1, 2, 4), standings) == [
        BrokerLoad(1, "h:9001", "r1", leads=1, follows=1, not_in_sync=0),
        BrokerLoad(2, "h:9002", "r2", leads=1, follows=1, not_in_sync=0),
        BrokerLoad(3, None, None, leads=0, follows=2, not_in_sync=1),
        BrokerLoad(4, "h:9004", "r4", leads=0, follows=0, not_in_sync=0),
    ]


def test_a_controller_that_is_down_is_none() -> None:
    """Metadata may name one that has died meanwhile, or -1."""
    assert live_controller(cluster(1, 2, controller=2)) == 2
    assert live_controller(cluster(1, 2, controller=3)) is None
    assert live_controller(cluster(1, 2, controller=-1)) is None
