"""What an administrator does while clients are at work: new certificates, a new password."""

from dataclasses import dataclass
from random import Random

from chaos.cluster import Cluster
from chaos.secured import BROKER_USERS


@dataclass(slots=True)
class Renew:
    """Every broker's certificate is replaced; nothing is restarted."""

    name: str = "renew"
    # Brokers look at files every two seconds, and open connections keep the old ones.
    broken_s: float = 4.0

    def make(self, cluster: Cluster, rng: Random) -> str:  # noqa: ARG002  # As of all faults.
        for number, member in cluster.members.items():
            assert cluster.secured is not None
            cluster.secured.certify(number, member.address.rpartition(":")[0])
        return "all certificates replaced"

    def heal(self, cluster: Cluster) -> None:
        """There is nothing to heal."""


@dataclass(slots=True)
class Rotate:
    """Brokers log in by another user, one after the other: a new password without an outage."""

    name: str = "rotate"
    broken_s: float = 0.0

    def make(self, cluster: Cluster, rng: Random) -> str:
        secured = cluster.secured
        assert secured is not None
        before, after = secured.broker_user, BROKER_USERS[secured.broker_user == BROKER_USERS[0]]
        secured.broker_user = after
        for number in rng.sample(sorted(cluster.members), len(cluster.members)):
            cluster.members[number].stop()
            cluster.members[number].start()
            cluster.wait_in_sync()
        return f"brokers log in as {after} and no more as {before}"

    def heal(self, cluster: Cluster) -> None:
        """There is nothing left to heal."""
