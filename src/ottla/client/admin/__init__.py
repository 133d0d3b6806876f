"""Administration of a cluster: topics and partitions, settings, groups, the cluster itself."""

from collections.abc import Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from ottla.client.admin.compaction import CompactionCalls
from ottla.client.admin.configs import ConfigCalls
from ottla.client.admin.decisions import DecisionCalls
from ottla.client.admin.elections import ElectionCalls
from ottla.client.admin.groups import GroupCalls
from ottla.client.admin.ledger import LedgerCalls
from ottla.client.admin.partitions import PartitionCalls
from ottla.client.admin.quotas import QuotaCalls
from ottla.client.admin.reassigning import ReassigningCalls
from ottla.client.admin.reassignments import ReassignmentCalls
from ottla.client.admin.rebalances import RebalanceCalls
from ottla.client.admin.retention import RetentionCalls
from ottla.client.admin.share_groups import ShareGroupCalls
from ottla.client.admin.transactions import TransactionCalls
from ottla.client.arguments import checked_options
from ottla.client.cluster import Cluster, ClusterOptions

__all__ = ["Admin", "AdminOptions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminOptions:
    """Times in milliseconds."""

    client_id: str = "ottla-admin"
    request_timeout_ms: int = 30_000
    retry_timeout_ms: int = 30_000

    def cluster(self) -> ClusterOptions:
        """As the cluster wants it."""
        return ClusterOptions(
            client_id=self.client_id,
            request_timeout_ms=self.request_timeout_ms,
            retry_timeout_ms=self.retry_timeout_ms,
        )


class Admin(
    PartitionCalls,
    ConfigCalls,
    GroupCalls,
    ElectionCalls,
    ReassigningCalls,
    ReassignmentCalls,
    DecisionCalls,
    CompactionCalls,
    LedgerCalls,
    RetentionCalls,
    QuotaCalls,
    RebalanceCalls,
    ShareGroupCalls,
    TransactionCalls,
):
    """Use it as `async with Admin("host:9092") as admin`.

    Calls raise BrokerRefused (what and why), ConnectionFailed, RequestTimedOut; those that may
    be repeated without harm are, for `retry_timeout_ms`.
    """

    def __init__(self, bootstrap: str | Iterable[str], options: AdminOptions | None = None) -> None:
        options = checked_options(options, AdminOptions, 'Admin("host:9092", AdminOptions(...))')
        super().__init__(Cluster(bootstrap, options.cluster()))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        await self.cluster.close()
