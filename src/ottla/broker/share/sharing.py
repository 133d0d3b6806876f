"""Everything of share groups that a broker keeps besides their membership."""

from typing import TYPE_CHECKING
from uuid import UUID

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import BrokerId
from ottla.broker.partitions.partition import Partition
from ottla.broker.share.dead_letter_post import DeadLetterPost
from ottla.broker.share.holders import Holders
from ottla.broker.share.persister import Persister
from ottla.broker.share.served import ServedPartition
from ottla.broker.share.states import ShareStates
from ottla.broker.topics.internal_topics import CONSUMER_OFFSETS
from ottla.network.connection import Connection
from ottla.share.records import ShareKey
from ottla.share.session import MemberKey, ShareSession, ShareSessions

if TYPE_CHECKING:
    from ottla.broker.process.broker import Broker


class Sharing:
    """Sessions of members, and the partitions that are handed out to them."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self.states = ShareStates(broker)
        self.persister = Persister(broker, self.states)
        self._holders = Holders(
            broker.broker_id,
            broker.peers,
            self._group_coordinator,
            broker.groups.describe_share_group,
        )
        self.post = DeadLetterPost(broker)
        self.sessions = ShareSessions(broker.settings.integer("group.share.max.share.sessions"))
        self._served: dict[ShareKey, ServedPartition] = {}
        self._closed = False

    def start(self) -> None:
        """Load what this broker coordinates."""
        self.states.start()

    def close(self) -> None:
        """The broker stops: whoever waits is to look elsewhere."""
        self._closed = True
        for served in list(self._served.values()):
            served.close(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        self.states.close()
        self.persister.close()
        self.post.close()

    def on_role(self, partition: Partition) -> None:
        """A partition changed hands."""
        self.states.on_role(partition)
        for served in list(self._served.values()):
            if served.partition is partition and not served.is_current:
                served.close(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def served(self, group_id: str, topic_id: UUID, index: int) -> ServedPartition:
        """A partition of a group, which may still be loading. Raises OttlaError."""
        partition = self._broker.partitions.get_by_id(topic_id, index)
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
                self._broker,
                self.persister,
                self._holders,
                self.post,
                key,
                partition,
                self._on_gone,
            )
            self._served[key] = served
            served.start()
        served.retain()
        return served

    def open_session(self, key: MemberKey, connection: Connection) -> ShareSession:
        """A member begins anew: what it had is for others. Raises OttlaError."""
        before = self.sessions.of(key)
        if before is not None:
            self._release(key)
        session = self.sessions.open(key, connection)
        connection.on_lost.append(lambda: self._on_connection_lost(session, connection))
        return session

    def resume_session(self, key: MemberKey, epoch: int, connection: Connection) -> ShareSession:
        """The session a request goes on with or ends. Raises OttlaError."""
        session = self.sessions.find(key, epoch)
        if session.connection is not connection:
            session.connection = connection
            connection.on_lost.append(lambda: self._on_connection_lost(session, connection))
        return session

    def close_session(self, session: ShareSession) -> None:
        """A member goes: what it has is for others at once."""
        if not self.sessions.close(session):
            return
        self._release(session.key)
        group_id = session.key.group_id
        if not self.sessions.has_group(group_id):
            # State may be altered while nobody is here: it is read anew for who comes next.
            for key, served in list(self._served.items()):
                if key.group_id == group_id:
                    served.retire()

    def _group_coordinator(self, group_id: str) -> BrokerId | None:
        index = self._broker.groups.partition_index(group_id)
        state = None if index is None else self._broker.image.partition(CONSUMER_OFFSETS, index)
        return None if state is None else state.leader

    def _on_connection_lost(self, session: ShareSession, connection: Connection) -> None:
        if session.connection is connection:
            self.close_session(session)

    def _release(self, member: MemberKey) -> None:
        for key, served in list(self._served.items()):
            if key.group_id == member.group_id:
                served.release_all(member.member_id)

    def _on_gone(self, served: ServedPartition) -> None:
        if self._served.get(served.key) is served:
            del self._served[served.key]
