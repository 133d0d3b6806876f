"""How a cluster is: all that is wrong with it, and what each broker leads and follows."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ottla.client.admin import Admin
from ottla.client.admin.cluster import ClusterDescription
from ottla.client.admin.compaction import CleanerStanding
from ottla.client.admin.configs import ResourceKind
from ottla.client.admin.partitions import PartitionStanding
from ottla.diagnosis.cleaners import cleaner_findings
from ottla.diagnosis.disks import disk_findings
from ottla.diagnosis.findings import Finding
from ottla.diagnosis.health import counts, findings
from ottla.diagnosis.internal_topics import FACTORS, too_few_replicas

# How long `health` waits for a broker that accepts connections and does not answer.
PATIENCE_S = 5.0


@dataclass(frozen=True, slots=True)
class ClusterHealth:
    """What is wrong (empty `findings`: nothing), and what that was found from.

    `controller` is None where no live broker is controller; `counts` are those of `health.counts`.
    """

    controller: int | None
    live: tuple[int, ...]
    partition_count: int
    counts: Mapping[str, int]
    findings: tuple[Finding, ...]
    cleaners: tuple[CleanerStanding, ...]


@dataclass(frozen=True, slots=True)
class BrokerLoad:
    """What one broker has. `address` is None where the broker is down."""

    broker_id: int
    address: str | None
    rack: str | None
    leads: int
    follows: int
    not_in_sync: int

    @property
    def is_alive(self) -> bool:
        return self.address is not None


async def health(admin: Admin) -> ClusterHealth:
    """Ask for everything that can be wrong.

    Log directories and cleaners of brokers that do not answer in time are left out: such a broker
    is seen by its partitions.
    """
    found = await admin.cluster.describe()
    standings = await admin.partitions.standings()
    controller = live_controller(found)
    moving = await admin.partitions.reassignments() if controller is not None else {}
    live = tuple(broker.broker_id for broker in found.brokers)
    wrong = findings(standings, live, moving, has_controller=controller is not None)
    if any(one.name.topic in FACTORS for one in standings):
        wrong += too_few_replicas(standings, len(live), await _factors(admin, live[0]))
    wrong += disk_findings(await admin.logs.directories(live, patience_s=PATIENCE_S))
    cleaners = await admin.compaction.cleaners(patience_s=PATIENCE_S)
    wrong += cleaner_findings(cleaners)
    return ClusterHealth(
        controller, live, len(standings), counts(standings), tuple(wrong), tuple(cleaners)
    )


def live_controller(found: ClusterDescription) -> int | None:
    """The controller, if that broker is alive."""
    live = {broker.broker_id for broker in found.brokers}
    return found.controller_id if found.controller_id in live else None


def broker_loads(
    found: ClusterDescription, standings: Iterable[PartitionStanding]
) -> list[BrokerLoad]:
    """The load of each broker that is alive or has replicas, by id."""
    leads: Counter[int] = Counter()
    follows: Counter[int] = Counter()
    out: Counter[int] = Counter()
    for one in standings:
        leads[one.leader] += 1
        follows.update(broker for broker in one.replicas if broker != one.leader)
        out.update(broker for broker in one.replicas if broker not in one.isr)
    live = {broker.broker_id: broker for broker in found.brokers}
    return [
        BrokerLoad(
            broker_id,
            str(live[broker_id].address) if broker_id in live else None,
            live[broker_id].rack if broker_id in live else None,
            leads[broker_id],
            follows[broker_id],
            out[broker_id],
        )
        for broker_id in sorted({*live, *follows})
    ]


async def _factors(admin: Admin, broker_id: int) -> dict[str, int]:
    """How many replicas internal topics are meant to have, by the names of the settings."""
    names = list(FACTORS.values())
    entries = await admin.configs.describe(ResourceKind.BROKER, str(broker_id), names)
    return {name: int(entry.value) for name, entry in entries.items() if entry.value is not None}
