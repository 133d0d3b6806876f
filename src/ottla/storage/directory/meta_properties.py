"""`meta.properties`: the cluster and broker of a log directory, and its own id.

Kafka's form, version 1: `cluster.id`, `node.id`, `directory.id` (`broker.id` in older ones).
"""

from dataclasses import dataclass
from uuid import UUID

from ottla.base.errors import ErrorCode, OttlaError
from ottla.storage.disk.filesystem import FileSystem, write_atomically
from ottla.storage.files.partition_metadata import decode_id, encode_id

META_PROPERTIES = "meta.properties"


@dataclass(frozen=True, slots=True)
class MetaProperties:
    """The owner of a log directory."""

    cluster_id: str
    node_id: int
    directory_id: UUID


def encode(properties: MetaProperties) -> bytes:
    """The file's bytes."""
    return (
        "#\n"
        "version=1\n"
        f"cluster.id={properties.cluster_id}\n"
        f"node.id={properties.node_id}\n"
        f"directory.id={encode_id(properties.directory_id)}\n"
    ).encode()


def decode(encoded: bytes) -> MetaProperties:
    """Read the file's bytes; a missing directory id gives the zero id. Raises ValueError."""
    values: dict[str, str] = {}
    for line in encoded.decode("utf-8").splitlines():
        name, equals, value = line.strip().partition("=")
        if equals and not name.startswith(("#", "!")):
            values[name.strip()] = value.strip().replace("\\:", ":").replace("\\=", "=")
    node_id = values.get("node.id", values.get("broker.id"))
    if values.get("version") not in ("0", "1") or node_id is None or "cluster.id" not in values:
        raise ValueError("not a meta.properties of version 0 or 1")
    directory_id = values.get("directory.id")
    return MetaProperties(
        values["cluster.id"],
        int(node_id),
        decode_id(directory_id) if directory_id else UUID(int=0),
    )


def claim(
    filesystem: FileSystem, path: str, cluster_id: str, node_id: int, fresh_id: UUID
) -> MetaProperties:
    """Claim the directory at `path` for this broker, unless it is this broker's already.

    Raises OttlaError: INCONSISTENT_CLUSTER_ID if it belongs to another cluster, INVALID_CONFIG if
    it belongs to another broker or is unreadable; OSError.
    """
    file = f"{path}/{META_PROPERTIES}"
    found = None
    if filesystem.exists(file):
        try:
            found = decode(filesystem.read_bytes(file))
        except ValueError as error:
            raise OttlaError(
                ErrorCode.INVALID_CONFIG,
                f"{file} cannot be read: {error}. Restore it, or use an empty directory.",
            ) from error
        _check(file, found, cluster_id, node_id)
        if found.directory_id.int:
            return found
    properties = MetaProperties(cluster_id, node_id, fresh_id)
    write_atomically(filesystem, file, encode(properties))
    return properties


def cluster_of(filesystem: FileSystem, path: str) -> str | None:
    """Return the cluster to which the directory at `path` belongs; None if it is unclaimed."""
    file = f"{path}/{META_PROPERTIES}"
    try:
        return decode(filesystem.read_bytes(file)).cluster_id
    except (FileNotFoundError, ValueError):
        return None


def _check(file: str, found: MetaProperties, cluster_id: str, node_id: int) -> None:
    if found.cluster_id != cluster_id:
        raise OttlaError(
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            f"{file}: this directory belongs to cluster {found.cluster_id}, not {cluster_id}. "
            "Point the broker at its own data directory, or at an empty one.",
        )
    if found.node_id != node_id:
        raise OttlaError(
            ErrorCode.INVALID_CONFIG,
            f"{file}: this directory belongs to broker {found.node_id}, not {node_id}. "
            "Start the broker with that node.id, or point it at its own directory.",
        )
