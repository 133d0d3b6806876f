"""The parts of one broker, each built once by `wiring` and complete from then on.

Only the process that runs the broker, tests and the simulation see all of them; each part and
each handler receives those that it uses.
"""

from dataclasses import dataclass

from ottla.base.settings import BrokerSettings
from ottla.broker.access.acls import Acls
from ottla.broker.audit.audit import Audit
from ottla.broker.cleaning.cleaner import Cleaner
from ottla.broker.cluster.admission import Admission
from ottla.broker.cluster.controller_fence import ControllerFence
from ottla.broker.cluster.departed import Departed
from ottla.broker.cluster.membership import BrokerMembership
from ottla.broker.cluster.metadata_updates import MetadataUpdates
from ottla.broker.cluster.new_leaders import NewLeaders
from ottla.broker.cluster.orders import Orders
from ottla.broker.cluster.peers import Peers
from ottla.broker.cluster.store_mark import StoreMark
from ottla.broker.configs.changes import ConfigChanges
from ottla.broker.configs.configs import Configs
from ottla.broker.configs.features import Features
from ottla.broker.controller import Controller
from ottla.broker.fetch.parts import FetchParts
from ottla.broker.groups import Groups
from ottla.broker.login.tokens import DelegationTokens
from ottla.broker.login.users import ScramUsers
from ottla.broker.partitions.flush import Flusher
from ottla.broker.partitions.own_standing import OwnStanding
from ottla.broker.partitions.partitions import Partitions
from ottla.broker.partitions.removals import Removals
from ottla.broker.process.maintenance import Maintenance
from ottla.broker.process.scrubber import Scrubber
from ottla.broker.produce.parts import ProduceParts
from ottla.broker.produce.producer_ids import ProducerIdBlocks
from ottla.broker.quotas.quotas import Quotas
from ottla.broker.replication.replica_selector import RackAwareSelector
from ottla.broker.replication.replication import Replication
from ottla.broker.retention.keeper import RetentionKeeper
from ottla.broker.runtime.runtime import Runtime
from ottla.broker.runtime.signal import Signal
from ottla.broker.runtime.view import ClusterView
from ottla.broker.serving.readiness import Readiness
from ottla.broker.share import Sharing
from ottla.broker.share.dead_letter_sender import DeadLetterSender
from ottla.broker.share.group_settings import ShareGroupSettings
from ottla.broker.share.group_state import GroupShareStates
from ottla.broker.share.persister import Persister
from ottla.broker.share.states import ShareStates
from ottla.broker.topics.topics import Topics
from ottla.broker.transactions import Transactions
from ottla.broker.transactions.add_partitions_sender import AddPartitionsSender
from ottla.broker.transactions.marker_sender import MarkerSender
from ottla.broker.transactions.marker_writer import MarkerWriter
from ottla.broker.transactions.verification import Verifications
from ottla.coordination.store import Store
from ottla.metadata.decisions import Decisions
from ottla.storage.directory.log_directories import LogDirectories
from ottla.storage.disk.filesystem import FileSystem


@dataclass(frozen=True, slots=True)
class Parts:
    """Listed from the bottom up, in the order in which they are built."""

    settings: BrokerSettings
    filesystem: FileSystem
    runtime: Runtime
    view: ClusterView
    store: Store
    store_mark: StoreMark | None
    log_directories: LogDirectories
    decisions: Decisions
    fence: ControllerFence
    readiness: Readiness
    registration_lost: Signal[[]]
    isolated: Signal[[]]
    admission: Admission
    peers: Peers
    flusher: Flusher
    removals: Removals
    own_standing: OwnStanding
    partitions: Partitions
    replication: Replication
    replica_selector: RackAwareSelector | None
    groups: Groups
    producer_ids: ProducerIdBlocks
    marker_writer: MarkerWriter
    marker_sender: MarkerSender
    transactions: Transactions
    add_partitions_sender: AddPartitionsSender
    verifications: Verifications
    departed: Departed
    updates: MetadataUpdates
    orders: Orders
    topics: Topics
    controller: Controller
    membership: BrokerMembership
    configs: Configs
    quotas: Quotas
    acls: Acls | None
    users: ScramUsers
    tokens: DelegationTokens | None
    audit: Audit | None
    features: Features
    config_changes: ConfigChanges
    share_states: ShareStates
    persister: Persister
    share_group_settings: ShareGroupSettings
    share_group_state: GroupShareStates
    dead_letters: DeadLetterSender
    sharing: Sharing
    cleaner: Cleaner
    retention: RetentionKeeper
    scrubber: Scrubber
    maintenance: Maintenance
    new_leaders: NewLeaders
    produce: ProduceParts
    fetch: FetchParts
