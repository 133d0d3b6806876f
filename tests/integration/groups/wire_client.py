"""One connection that speaks any version of any API, for what no client library would send."""

import itertools
import socket
import time
from typing import Any, Self
from uuid import UUID

from rig.probe import connect, receive_frame

from ottla.wire.api import ApiKey
from ottla.wire.frames import decode_response, encode_request
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.group_offsets import OffsetFetchRequest
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.wire.notation import Message

API_OF = {
    "JoinGroupRequest": ApiKey.JOIN_GROUP,
    "SyncGroupRequest": ApiKey.SYNC_GROUP,
    "HeartbeatRequest": ApiKey.HEARTBEAT,
    "LeaveGroupRequest": ApiKey.LEAVE_GROUP,
    "OffsetCommitRequest": ApiKey.OFFSET_COMMIT,
    "OffsetFetchRequest": ApiKey.OFFSET_FETCH,
    "DescribeGroupsRequest": ApiKey.DESCRIBE_GROUPS,
    "ListGroupsRequest": ApiKey.LIST_GROUPS,
    "DeleteGroupsRequest": ApiKey.DELETE_GROUPS,
    "OffsetDeleteRequest": ApiKey.OFFSET_DELETE,
    "ConsumerGroupDescribeRequest": ApiKey.CONSUMER_GROUP_DESCRIBE,
    "ConsumerGroupHeartbeatRequest": ApiKey.CONSUMER_GROUP_HEARTBEAT,
    "FindCoordinatorRequest": ApiKey.FIND_COORDINATOR,
    "MetadataRequest": ApiKey.METADATA,
}


class WireClient:
    """A context manager; `ask` sends a request and waits for its answer."""

    def __init__(self, port: int) -> None:
        self._socket: socket.socket = connect(port)
        self._numbers = itertools.count(1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def ask(self, request: Message, version: int) -> Any:
        """The answer, decoded in the same version."""
        self.send(request, version)
        return self.receive(request, version)

    def send(self, request: Message, version: int) -> None:
        parts = encode_request(request, version, next(self._numbers), "wire")
        self._socket.sendall(b"".join(bytes(part) for part in parts))

    def receive(self, request: Message, version: int) -> Any:
        """The next answer on the connection, which must be that to `request`."""
        frame = receive_frame(self._socket)
        _, answer = decode_response(API_OF[type(request).__name__], version, frame)
        return answer

    def is_silent(self, timeout_s: float) -> bool:
        """Whether nothing comes for that long."""
        self._socket.settimeout(timeout_s)
        try:
            return not self._socket.recv(4, socket.MSG_PEEK)
        except TimeoutError:
            return True
        finally:
            self._socket.settimeout(60)

    def topic_id(self, name: str) -> UUID:
        """The id of a topic that exists."""
        request = MetadataRequest(topics=[MetadataRequestTopic(name=name)])
        topic_id: UUID = self.ask(request, 12).topics[0].topic_id
        return topic_id

    def find_coordinator(self, group_id: str) -> None:
        """Look the coordinator up, which makes `__consumer_offsets`, until it serves the group."""
        find = FindCoordinatorRequest(key=group_id, key_type=0)
        fetch = OffsetFetchRequest(group_id=group_id, topics=[])
        deadline_s = time.monotonic() + 120
        while self.ask(find, 3).error_code or self.ask(fetch, 5).error_code:
            assert time.monotonic() < deadline_s, "no coordinator"
            time.sleep(0.05)
