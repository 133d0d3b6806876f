"""The parts of one broker, each built and entered once by `wiring` and complete from then on.

Only the process that runs the broker, tests and the simulation see all of them; each part and
each handler receives those that it uses.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ottla.broker.access.part import AccessPart
from ottla.broker.audit.audit import Audit
from ottla.broker.cleaning.cleaner import Cleaner
from ottla.broker.cluster.part import ClusterPart
from ottla.broker.configs.part import ConfigsPart
from ottla.broker.controller import Controller
from ottla.broker.groups import Groups
from ottla.broker.login.part import LoginPart
from ottla.broker.partitions.upkeep import Upkeep
from ottla.broker.quotas.quotas import Quotas
from ottla.broker.replication.replication import Replication
from ottla.broker.retention.keeper import RetentionKeeper
from ottla.broker.runtime.part import BrokerPart
from ottla.broker.share.part import SharePart
from ottla.broker.topics.part import MetadataPart
from ottla.broker.transactions.part import TransactionPart


@dataclass(frozen=True)
class Parts:
    """In the order in which they are entered; the last one is left first."""

    cluster: ClusterPart
    replication: Replication
    groups: Groups
    transactions: TransactionPart
    metadata: MetadataPart
    share: SharePart
    controller: Controller
    quotas: Quotas
    access: AccessPart
    # None where the settings ask for no audit log.
    audit: Audit | None
    login: LoginPart
    configs: ConfigsPart
    upkeep: Upkeep
    retention: RetentionKeeper
    cleaner: Cleaner

    def __iter__(self) -> Iterator[BrokerPart]:
        return iter(self.by_name().values())

    def by_name(self) -> Mapping[str, BrokerPart]:
        """Every part that this broker has."""
        return {name: part for name, part in vars(self).items() if part is not None}
