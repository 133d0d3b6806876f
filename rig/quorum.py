"""DescribeQuorum version 0 by hand: which node of a KRaft cluster is the active controller."""

import struct

from rig.frames import compact_string
from rig.probe import connect, receive_frame

_DESCRIBE_QUORUM = 55
_TOPIC = b"__cluster_metadata"


def active_controller(port: int) -> int:
    """The node id; -1 while there is none. Raises OSError while the broker does not serve."""
    header = struct.pack(">hhih3s", _DESCRIBE_QUORUM, 0, 1, 3, b"rig") + b"\0"
    body = b"\2" + compact_string(_TOPIC) + b"\2" + struct.pack(">i", 0) + b"\0\0\0"
    frame = header + body
    with connect(port, 5.0) as connection:
        connection.sendall(struct.pack(">i", len(frame)) + frame)
        answer = receive_frame(connection)
    # Correlation id, tags, error; one topic with its name; one partition: index, error, leader.
    error, leader = struct.unpack_from(
        ">hi", answer, 4 + 1 + 2 + 1 + len(compact_string(_TOPIC)) + 1 + 4
    )
    return -1 if error else int(leader)
