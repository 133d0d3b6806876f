"""The parts of `Admin`, by name, for `ottla.client.sync.Admin`."""

from ottla.client.admin.acls import AccessRules
from ottla.client.admin.cluster import Brokers
from ottla.client.admin.compaction import Compaction
from ottla.client.admin.configs import Configs
from ottla.client.admin.decisions import Decisions
from ottla.client.admin.groups import Groups
from ottla.client.admin.logs import Logs
from ottla.client.admin.partitions import Partitions
from ottla.client.admin.quotas import Quotas
from ottla.client.admin.rebalances import Rebalances
from ottla.client.admin.share_groups import ShareGroups
from ottla.client.admin.tokens import Tokens
from ottla.client.admin.topics import Topics
from ottla.client.admin.transactions import Transactions
from ottla.client.admin.users import Users

__all__ = [
    "AccessRules",
    "Brokers",
    "Compaction",
    "Configs",
    "Decisions",
    "Groups",
    "Logs",
    "Partitions",
    "Quotas",
    "Rebalances",
    "ShareGroups",
    "Tokens",
    "Topics",
    "Transactions",
    "Users",
]
