"""The health of a cluster: all its problems, and the load of each broker."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ottla.base.errors import OttlaError
from ottla.base.ids import TopicPartition
from ottla.base.quantities import counted, iso
from ottla.client.admin import Admin
from ottla.client.admin.cluster import ClusterDescription
from ottla.client.admin.compaction import CleanerStatus, FailedCleaning
from ottla.client.admin.configs import ConfigResourceType
from ottla.client.admin.partitions import PartitionStatus
from ottla.client.connection.cluster import connections_of
from ottla.client.connection.view import BrokerDescription
from ottla.diagnosis.health import HealthFinding, Trouble, counts, disk_findings, findings
from ottla.diagnosis.partitions import no_answer
from ottla.wire.messages.metadata import MetadataRequest, MetadataResponse

# An internal topic keeps the replication factor it was created with. If the cluster had one broker
# when the first group committed, all committed offsets have one copy, even with three brokers now.
# For each topic, the broker setting of its replication factor.
FACTORS: Mapping[str, str] = {
    "__consumer_offsets": "offsets.topic.replication.factor",
    "__transaction_state": "transaction.state.log.replication.factor",
    "__share_group_state": "share.coordinator.state.topic.replication.factor",
}
_CORES = "cores"


def too_few_replicas(
    standings: Iterable[PartitionStatus], brokers: int, factors: Mapping[str, int]
) -> list[HealthFinding]:
    """Report internal topics with fewer replicas than configured and than there are `brokers`.

    With the setting `cores`, `brokers` is the number of machines. `factors` has the configured
    replication factors by setting.
    """
    found: dict[tuple[str, int, int], list[TopicPartition]] = {}
    for one in standings:
        setting = FACTORS.get(one.name.topic)
        wanted = min(factors.get(setting, 1), brokers) if setting else 1
        if len(one.replicas) < wanted:
            found.setdefault((one.name.topic, len(one.replicas), wanted), []).append(one.name)
    return [
        HealthFinding(
            Trouble.TOO_FEW_REPLICAS,
            f"{topic} was made with {counted(have, 'replica')}, and {FACTORS[topic]} asks for "
            f"{factors[FACTORS[topic]]}: one broker that is lost may take it along",
            f"`ottla partition plan {topic} --replicas {wanted} -o json > plan.json`, then "
            "`ottla partition reassign --plan plan.json`",
            tuple(names),
        )
        for (topic, have, wanted), names in found.items()
    ]


def cleaner_findings(cleaners: Iterable[CleanerStatus]) -> list[HealthFinding]:
    """Report logs that cannot be cleaned, by broker and reason, and disabled cleaners."""
    found: list[HealthFinding] = []
    for cleaner in cleaners:
        if cleaner.logs and not cleaner.threads:
            found.append(_switched_off(cleaner))
        by_reason: dict[str, list[FailedCleaning]] = {}
        for failed in cleaner.failed:
            by_reason.setdefault(failed.why, []).append(failed)
        found += [_failed(cleaner.broker_id, why, logs) for why, logs in by_reason.items()]
    return found


def _switched_off(cleaner: CleanerStatus) -> HealthFinding:
    return HealthFinding(
        Trouble.NOT_COMPACTED,
        f"broker {cleaner.broker_id} compacts nothing, and {counted(cleaner.logs, 'log')} of it "
        "would be: they grow for ever",
        "take log.cleaner.enable=false or log.cleaner.threads=0 out of its settings",
        (),
    )


def _failed(broker_id: int, why: str, logs: list[FailedCleaning]) -> HealthFinding:
    attempts = max(failed.attempts for failed in logs)
    since, again = (
        iso(min(failed.since_ms for failed in logs)),
        iso(min(failed.retry_at_ms for failed in logs)),
    )
    names: tuple[TopicPartition, ...] = tuple(failed.name for failed in logs)
    return HealthFinding(
        Trouble.NOT_COMPACTED,
        f"broker {broker_id} fails since {since}, {counted(attempts, 'time')} in a row: {why}",
        f"nothing is lost, it grows; tried again at {again}, or at once by `ottla topic compact "
        f"{names[0].topic} --now`",
        names,
    )


# How long `health` waits by default for a broker that accepts connections but sends no answer.
PATIENCE_S = 5.0


@dataclass(frozen=True, slots=True)
class ClusterHealth:
    """The problems of a cluster (`findings`), and the data they were derived from.

    `controller` is None if no live broker is controller; `counts` are those of `health.counts`.
    """

    controller: int | None
    live: tuple[int, ...]
    topic_count: int
    partition_count: int
    counts: Mapping[str, int]
    findings: tuple[HealthFinding, ...]
    cleaners: tuple[CleanerStatus, ...]


@dataclass(frozen=True, slots=True)
class BrokerLoad:
    """The load of one broker. `address` is None if the broker is down."""

    broker_id: int
    address: str | None
    rack: str | None
    leads: int
    follows: int
    not_in_sync: int

    @property
    def is_alive(self) -> bool:
        return self.address is not None


async def health(admin: Admin, patience_s: float = PATIENCE_S) -> ClusterHealth:
    """Check the whole cluster for problems.

    If a broker does not answer within `patience_s`, its log directories and cleaner are left out.
    The findings about partitions show that such a broker has a problem.
    """
    found = await admin.cluster.describe()
    standings = await admin.partitions.describe()
    controller = live_controller(found)
    moving = await admin.partitions.reassignments() if controller is not None else {}
    live = tuple(broker.broker_id for broker in found.brokers)
    wrong = findings(standings, live, moving, has_controller=controller is not None)
    if any(one.name.topic in FACTORS for one in standings):
        factors, apart = await _factors(admin, live[0])
        places = {broker.rack or broker.broker_id for broker in found.brokers} if apart else live
        wrong += too_few_replicas(standings, len(places), factors)
    wrong += disk_findings(await admin.logs.directories(live, patience_s=patience_s))
    cleaners = await admin.compaction.cleaners(patience_s=patience_s)
    wrong += cleaner_findings(cleaners)
    return ClusterHealth(
        controller,
        live,
        len({one.name.topic for one in standings}),
        len(standings),
        counts(standings),
        tuple(wrong),
        tuple(cleaners),
    )


@dataclass(frozen=True, slots=True)
class BrokerAnswer:
    """Whether a broker answers: after `elapsed_ms`, or not, with an `error`."""

    broker: BrokerDescription
    is_controller: bool
    elapsed_ms: float | None
    error: OttlaError | None


async def broker_answers(admin: Admin, patience_s: float = PATIENCE_S) -> list[BrokerAnswer]:
    """Send each live broker a small request, all at once; wait at most `patience_s`."""
    found = await admin.cluster.describe()
    cluster = connections_of(admin)
    loop = asyncio.get_running_loop()

    async def ask(broker: BrokerDescription) -> BrokerAnswer:
        is_controller = broker.broker_id == found.controller_id
        began_s = loop.time()
        try:
            async with asyncio.timeout(patience_s):
                await cluster.ask(broker.broker_id, MetadataRequest(topics=[]), MetadataResponse)
        except TimeoutError:
            return BrokerAnswer(
                broker, is_controller, None, no_answer(broker.broker_id, patience_s)
            )
        except OttlaError as error:
            return BrokerAnswer(broker, is_controller, None, error)
        return BrokerAnswer(broker, is_controller, (loop.time() - began_s) * 1000, None)

    return list(await asyncio.gather(*map(ask, found.brokers)))


def live_controller(found: ClusterDescription) -> int | None:
    """Return the controller's id if that broker is alive, else None."""
    live = {broker.broker_id for broker in found.brokers}
    return found.controller_id if found.controller_id in live else None


def broker_loads(
    found: ClusterDescription, standings: Iterable[PartitionStatus]
) -> list[BrokerLoad]:
    """Return the load of each broker that is alive or has replicas, by id."""
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


async def _factors(admin: Admin, broker_id: int) -> tuple[dict[str, int], bool]:
    """Return the configured replication factors of internal topics, by setting.

    Also return whether a machine holds at most one replica of a partition (`cores`).
    """
    names = [*FACTORS.values(), _CORES]
    entries = await admin.configs.describe(ConfigResourceType.BROKER, str(broker_id), names)
    values = {name: entry.value for name, entry in entries.items() if entry.value}
    apart = values.pop(_CORES, None) is not None
    return {name: int(value) for name, value in values.items()}, apart
