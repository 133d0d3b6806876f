"""AlterReplicaLogDirs (key 34): move replicas between the log directories of a broker (KIP-113).

Version 2 is flexible.
"""

from ottla.wire.notation import Message, array, int16, int32, string


class AlterReplicaLogDirTopic(Message):
    """An element of `AlterReplicaLogDir.topics`."""

    name: str = string()
    partitions: list[int] = array(int32)


class AlterReplicaLogDir(Message):
    """An element of `AlterReplicaLogDirsRequest.dirs`."""

    path: str = string()
    topics: list[AlterReplicaLogDirTopic] = array(AlterReplicaLogDirTopic)


class AlterReplicaLogDirsRequest(Message, api_key=34, versions="1-2", flexible="2+"):
    """An AlterReplicaLogDirs request."""

    dirs: list[AlterReplicaLogDir] = array(AlterReplicaLogDir)


class AlterReplicaLogDirPartitionResult(Message):
    """An element of `AlterReplicaLogDirTopicResult.partitions`."""

    partition_index: int = int32()
    error_code: int = int16()


class AlterReplicaLogDirTopicResult(Message):
    """An element of `AlterReplicaLogDirsResponse.results`."""

    topic_name: str = string()
    partitions: list[AlterReplicaLogDirPartitionResult] = array(AlterReplicaLogDirPartitionResult)


class AlterReplicaLogDirsResponse(Message, api_key=34, versions="1-2", flexible="2+"):
    """An AlterReplicaLogDirs response."""

    throttle_time_ms: int = int32()
    results: list[AlterReplicaLogDirTopicResult] = array(AlterReplicaLogDirTopicResult)
