"""Sessions of share-group members, and the share partitions that this broker leads.

Kafka's counterpart is SharePartitionManager.
"""

from uuid import UUID

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.settings import BrokerSettings
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.partitions import Partitions
from ottla.broker.runtime.runtime import Runtime
from ottla.broker.runtime.signal import Signal
from ottla.broker.share.dead_letters import DeadLetterSender
from ottla.broker.share.group_settings import ShareGroupSettings
from ottla.broker.share.persister import AssignmentLookup, Persister
from ottla.broker.share.served import ServedPartition
from ottla.network.connection import Connection
from ottla.share.records import ShareKey
from ottla.share.session import MemberKey, ShareSession, ShareSessions


class SharePartitions:
    """Opens and closes share sessions; loads a share partition at its first fetch."""

    def __init__(
        self,
        runtime: Runtime,
        settings: BrokerSettings,
        partitions: Partitions,
        group_settings: ShareGroupSettings,
        persister: Persister,
        lookup: AssignmentLookup,
        dead_letters: DeadLetterSender,
    ) -> None:
        self._runtime = runtime
        self._partitions = partitions
        self._group_settings = group_settings
        self._persister = persister
        self._lookup = lookup
        self._dead_letters = dead_letters
        self.sessions = ShareSessions(settings.integer("group.share.max.share.sessions"))
        self._served: dict[ShareKey, ServedPartition] = {}
        self._closed = False
        # Records that were delivered again since the broker's start; emitted with their number.
        self.redeliveries = 0
        self.redelivered: Signal[[int]] = Signal()

    def __len__(self) -> int:
        """The number of open share partitions."""
        return len(self._served)

    def close(self) -> None:
        """Close all share partitions at shutdown; requests get NOT_LEADER_OR_FOLLOWER."""
        self._closed = True
        for served in list(self._served.values()):
            served.close(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def on_role(self, partition: Partition) -> None:
        """Close share partitions of a partition whose leader or leader epoch has changed."""
        for served in list(self._served.values()):
            if served.partition is partition and not served.is_current:
                served.close(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def served(self, group_id: str, topic_id: UUID, index: int) -> ServedPartition:
        """Return a share partition, which may still be loading; open it at first use.

        Raises OttlaError.
        """
        partition = self._partitions.get_by_id(topic_id, index)
        partition.check_readable()
        partition.check_led()
        key = ShareKey(group_id, topic_id, index)
        served = self._served.get(key)
        if served is not None and (served.partition is not partition or not served.is_current):
            served.close(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            served = None
        if served is None:
            if self._closed:
                raise OttlaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "this broker is stopping")
            served = ServedPartition(
                self._runtime,
                self._group_settings,
                self._persister,
                self._lookup,
                self._dead_letters,
                key,
                partition,
                self._on_closed,
                self._on_redelivered,
            )
            self._served[key] = served
            served.start()
        served.retain()
        return served

    def open_session(self, key: MemberKey, connection: Connection) -> ShareSession:
        """Open a member's session; records of its last one are released. Raises OttlaError."""
        before = self.sessions.of(key)
        if before is not None:
            self._release(key)
        session = self.sessions.open(key, connection)
        connection.on_lost.append(lambda: self._on_connection_lost(session, connection))
        return session

    def resume_session(self, key: MemberKey, epoch: int, connection: Connection) -> ShareSession:
        """Return the session that a request continues or ends. Raises OttlaError."""
        session = self.sessions.find(key, epoch)
        if session.connection is not connection:
            session.connection = connection
            connection.on_lost.append(lambda: self._on_connection_lost(session, connection))
        return session

    def close_session(self, session: ShareSession) -> None:
        """End a member's session, and release the records it has acquired."""
        if not self.sessions.close(session):
            return
        self._release(session.key)
        group_id = session.key.group_id
        if not self.sessions.has_group(group_id):
            # AlterShareGroupOffsets may change the state of a group without members: close its
            # share partitions, so that the next session reads the state again.
            for key, served in list(self._served.items()):
                if key.group_id == group_id:
                    served.retire()

    def _on_connection_lost(self, session: ShareSession, connection: Connection) -> None:
        if session.connection is connection:
            self.close_session(session)

    def _release(self, member: MemberKey) -> None:
        for key, served in list(self._served.items()):
            if key.group_id == member.group_id:
                served.release_all(member.member_id)

    def _on_closed(self, served: ServedPartition) -> None:
        if self._served.get(served.key) is served:
            del self._served[served.key]

    def _on_redelivered(self, count: int) -> None:
        self.redeliveries += count
        self.redelivered.emit(count)
