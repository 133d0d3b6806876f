"""Messages to describe log directories, and to move replicas between them."""

from ottla.wire.notation import Message, array, boolean, int16, int32, int64, string


class DescribableLogDirTopic(Message):
    """An element of `DescribeLogDirsRequest.topics`."""

    topic: str = string()
    partitions: list[int] = array(int32)


class DescribeLogDirsRequest(Message, api_key=35, versions="1-5", flexible="2+"):
    """DescribeLogDirs (key 35): list the sizes and lags of replicas by log directory (KIP-113).

    Version 2 is flexible, 3 adds an error for the whole answer, 4 adds the size of the volume
    (KIP-827), 5 adds whether a directory is cordoned, that is, gets no new partitions (KIP-1066).
    """

    topics: list[DescribableLogDirTopic] | None = array(DescribableLogDirTopic, nullable="0+")


class DescribeLogDirsPartition(Message):
    """An element of `DescribeLogDirsTopic.partitions`."""

    partition_index: int = int32()
    partition_size: int = int64()
    offset_lag: int = int64()
    is_future_key: bool = boolean()


class DescribeLogDirsTopic(Message):
    """An element of `DescribeLogDirsResult.topics`."""

    name: str = string()
    partitions: list[DescribeLogDirsPartition] = array(DescribeLogDirsPartition)


class DescribeLogDirsResult(Message):
    """An element of `DescribeLogDirsResponse.results`."""

    error_code: int = int16()
    log_dir: str = string()
    topics: list[DescribeLogDirsTopic] = array(DescribeLogDirsTopic)
    total_bytes: int = int64("4+", default=-1, ignorable=True)
    usable_bytes: int = int64("4+", default=-1, ignorable=True)
    is_cordoned: bool = boolean("5+", ignorable=True)


class DescribeLogDirsResponse(Message, api_key=35, versions="1-5", flexible="2+"):
    """A DescribeLogDirs response."""

    throttle_time_ms: int = int32()
    error_code: int = int16("3+", ignorable=True)
    results: list[DescribeLogDirsResult] = array(DescribeLogDirsResult)


class AlterReplicaLogDirTopic(Message):
    """An element of `AlterReplicaLogDir.topics`."""

    name: str = string()
    partitions: list[int] = array(int32)


class AlterReplicaLogDir(Message):
    """An element of `AlterReplicaLogDirsRequest.dirs`."""

    path: str = string()
    topics: list[AlterReplicaLogDirTopic] = array(AlterReplicaLogDirTopic)


class AlterReplicaLogDirsRequest(Message, api_key=34, versions="1-2", flexible="2+"):
    """AlterReplicaLogDirs (key 34): move replicas between log directories (KIP-113).

    Version 2 is flexible.
    """

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
