"""Administration of a cluster, in parts: `admin.topics.create("flights", partitions=6)`."""

from collections.abc import Iterable
from types import TracebackType
from typing import Final, Self, TypedDict, Unpack

from ottla.client.admin.access import AccessRules, Quotas
from ottla.client.admin.calls import Calls
from ottla.client.admin.clients import Clients
from ottla.client.admin.cluster import Brokers
from ottla.client.admin.compaction import Compaction
from ottla.client.admin.configs import Configs
from ottla.client.admin.credentials import Tokens, Users
from ottla.client.admin.decisions import Decisions, Rebalances
from ottla.client.admin.groups import Groups, ShareGroups
from ottla.client.admin.logs import Logs
from ottla.client.admin.partitions import Partitions
from ottla.client.admin.topics import Topics
from ottla.client.admin.transactions import Transactions
from ottla.client.admin.undo import Undo
from ottla.client.common.arguments import checked_options, checks_calls
from ottla.client.common.other_names import OtherNames
from ottla.client.connection.cluster import BOOTSTRAP_TIMEOUT_MS, Cluster, ClusterOptions
from ottla.client.connection.security import ClientConfig, security_by

__all__ = ["Admin", "AdminOptions"]


class AdminOptions(TypedDict, total=False):
    """Keyword arguments of `Admin`, by Kafka's names. Times in milliseconds.

    `bootstrap_timeout_ms`: how long to wait for a first answer of any bootstrap address before
    BootstrapFailed is raised. `config`: settings of Kafka's clients for TLS and logins, as a
    mapping or the path of a file; with None the client reads the file that OTTLA_CONFIG names.
    """

    client_id: str
    request_timeout_ms: int
    bootstrap_timeout_ms: int
    default_api_timeout_ms: int
    config: ClientConfig


DEFAULTS: Final = AdminOptions(
    client_id="ottla-admin",
    request_timeout_ms=30_000,
    bootstrap_timeout_ms=BOOTSTRAP_TIMEOUT_MS,
    default_api_timeout_ms=30_000,
    config=None,
)


@checks_calls()
class Admin(OtherNames):
    """Administers a cluster. Use it as `async with Admin("host:9092") as admin`.

    For blocking calls see `ottla.client.sync.Admin`.

    Each part has calls for one noun: `topics`, `partitions`, `configs`, `groups`, `share_groups`,
    `transactions`, `quotas`, `acls`, `users`, `tokens`, `cluster`, `logs`. Only Ottla's own brokers
    serve `clients`, `compaction`, `decisions`, `rebalances`, `undo` and some calls of `logs`. Calls
    raise BrokerRefused (with request and reason), ConnectionFailed, RequestTimedOut. Idempotent
    calls are retried for `default_api_timeout_ms`.
    """

    def __init__(
        self, bootstrap_servers: str | Iterable[str], **options: Unpack[AdminOptions]
    ) -> None:
        # The connections and metadata that all parts share.
        self._connections = Cluster(
            bootstrap_servers, _cluster_options(checked_options(options, DEFAULTS, AdminOptions))
        )
        calls = Calls(self._connections)
        self.configs = Configs(calls)
        self.topics = Topics(calls, self.configs)
        self.partitions = Partitions(calls, self.topics, self.configs)
        self.groups = Groups(calls)
        self.share_groups = ShareGroups(calls)
        self.logs = Logs(calls)
        self.transactions = Transactions(calls, self.logs)
        self.quotas = Quotas(calls)
        self.acls = AccessRules(calls)
        self.users = Users(calls)
        self.tokens = Tokens(calls)
        self.cluster = Brokers(calls)
        self.compaction = Compaction(calls)
        self.clients = Clients(calls)
        self.decisions = Decisions(calls)
        self.rebalances = Rebalances(calls)
        self.undo = Undo(calls)

    def __repr__(self) -> str:
        return f"<Admin of {self._connections.named}>"

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
        await self._connections.close()


def _cluster_options(options: AdminOptions) -> ClusterOptions:
    """Return the options for connecting to the cluster."""
    return ClusterOptions(
        client_id=options["client_id"],
        security=security_by(options["config"]),
        request_timeout_ms=options["request_timeout_ms"],
        # A broker that stands still accepts connections: it must not delay a short call.
        connect_timeout_ms=min(10_000, options["request_timeout_ms"]),
        bootstrap_timeout_ms=options["bootstrap_timeout_ms"],
        retry_timeout_ms=options["default_api_timeout_ms"],
    )
