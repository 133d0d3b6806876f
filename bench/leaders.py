"""Who leads and who controls in a cluster, and moving a leader as an operator does."""

from ottla.base.ids import TopicPartition
from ottla.client.admin.partitions import ElectionKind
from ottla.client.common.errors import ClientError
from ottla.client.sync import Admin
from rig.clusters import Cluster, Member
from rig.quorum import active_controller


def leader(cluster: Cluster, topic: str, partition: int = 0) -> int:
    """The leader as most of the running brokers tell; waits until one is known."""
    found: list[int] = []

    def known() -> bool:
        for member in cluster.running:
            try:
                seen = cluster.seen_by(member.number, [topic])
            except OSError:
                continue
            state = seen.topics[topic].get(partition)
            if state is not None and state.leader in seen.ports:
                found.append(state.leader)
                return True
        return False

    cluster.wait_until(known, f"a leader of {topic}-{partition}")
    return found[-1]


def controller(cluster: Cluster) -> int:
    """The broker whose controller is active; waits until there is one."""
    found: list[int] = []

    def known() -> bool:
        try:
            found.append(_controller_known_to(cluster, cluster.running[0]))
        except OSError:
            return False
        return found[-1] in cluster.members

    cluster.wait_until(known, "a controller")
    return found[-1]


def _controller_known_to(cluster: Cluster, member: Member) -> int:
    # A KRaft broker names any broker as the controller: it forwards what comes.
    if cluster.name == "kafka":
        return active_controller(member.port)
    return cluster.seen_by(member.number, []).controller


def prepare_move(cluster: Cluster, topic: str, target: int, partition: int = 0) -> None:
    """Make `target` the preferred leader: the same replicas in another order."""
    at = TopicPartition(topic, partition)
    others = [number for number in cluster.members if number != target]
    with Admin(cluster.bootstrap) as admin:
        for error in admin.partitions.reassign({at: [target, *others]}).values():
            if error is not None:
                raise error
    cluster.wait_until(
        lambda: cluster.agree(
            lambda seen: seen.topics[topic][partition].replicas[0] == target, [topic]
        ),
        f"{target} as the first replica of {topic}-{partition}",
    )
    cluster.wait_until_in_sync(topic)


def move_leader(cluster: Cluster, topic: str, target: int, partition: int = 0) -> None:
    """Move the leader to `target` in order; done when all brokers tell so."""
    if leader(cluster, topic, partition) == target:
        return
    prepare_move(cluster, topic, target, partition)
    elect_preferred(cluster, topic, partition)
    cluster.wait_until(
        lambda: cluster.agree(lambda seen: seen.topics[topic][partition].leader == target, [topic]),
        f"{target} leads {topic}-{partition}",
    )


def elect_all_preferred(cluster: Cluster) -> None:
    """Let the first replica of every partition lead."""
    with Admin(cluster.bootstrap) as admin:
        admin.partitions.elect_leaders(ElectionKind.PREFERRED, None)


def elect_preferred(cluster: Cluster, topic: str, partition: int = 0) -> None:
    """Let the first replica lead. Raises ClientError where the controller refuses."""
    at = TopicPartition(topic, partition)
    with Admin(cluster.bootstrap) as admin:
        errors: list[ClientError] = [
            error
            for error in admin.partitions.elect_leaders(ElectionKind.PREFERRED, [at]).values()
            if error is not None
        ]
    if errors:
        raise errors[0]
