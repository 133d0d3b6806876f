"""Plans which offsets the next commit of a table reads, and on which commit it builds."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.model.manifest import Kind, Manifest
from ottla.lake.model.plan import SizedRange, ranges, require_same_topic, split
from ottla.lake.source.access import Bootstrap
from ottla.lake.source.backlog import log_bytes
from ottla.lake.source.boundaries import Limits
from ottla.lake.source.cluster import Cluster, TopicBounds
from ottla.lake.source.ledgers import loss_explained
from ottla.lake.tables.table import LakeTable, foundation, on_record
from ottla.lake.write.settings import FileSizes

# The most offsets of one task; tasks are split further by bytes.
OFFSETS_PER_TASK = 2_000_000


@dataclass(frozen=True, slots=True)
class Base:
    """The current description of the topic, and the commit that the next commit builds on."""

    described: TopicBounds
    before: Manifest | None
    digest: str | None
    overridden: tuple[str, ...] = ()  # Problems of the table that an operator chose to override.

    @property
    def positions(self) -> Mapping[int, int] | None:
        """Return the table's positions; None for a new table."""
        return self.before.positions if self.before else None


def built_on(
    table: LakeTable,
    cluster: Cluster,
    topic: str,
    override: str | None = None,
    *,
    is_changelog: bool = False,
) -> Base:
    """Describe the topic, and read the table's newest commit, on which a load builds.

    If `override` gives a reason, problems of the table do not fail the load. Raises OttlaError if
    the table holds another topic or is of another kind, or if the topic was recreated or has lost
    records that the table has.
    """
    base = foundation(table) if override else None
    overridden = on_record(base.problems, override) if base and override else ()
    before, digest = (base.newest, base.digest) if base else table.latest()
    # Read after the manifest, because another load may have advanced the positions meanwhile.
    described = cluster.describe(topic)
    if before is not None:
        if before.topic != topic:
            raise OttlaError(
                ErrorCode.INVALID_REQUEST,
                f"this table holds topic {before.topic}; load {topic} into a folder of its own",
            )
        if (before.changelog is not None) is not is_changelog:
            held = f"the {before.changelog.keeps} of each key" if before.changelog else "all rows"
            raise OttlaError(
                ErrorCode.INVALID_REQUEST,
                f"this table keeps {held} of {topic}; choose a folder of its own for another kind "
                "of table (`ottla lake load`, `ottla lake changelog`)",
            )
        with loss_explained(cluster, described, before):
            require_same_topic(
                topic, before.topic_id, described.topic_id, before.positions, described.bounds
            )
    return Base(described, before, digest, overridden)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadPlan(Base):
    """The offset ranges that the next commit of a table reads, and the commit that it builds on."""

    bootstrap: Bootstrap
    load_id: str
    limits: Limits
    ranges: Sequence[SizedRange]
    idle: Sequence[int]  # Partitions that have no position yet and no records to load.
    kind: Kind = "load"
    # High watermarks by partition, if they were requested. Open transactions may lie below them.
    high_watermarks: Mapping[int, int] = field(default_factory=dict)

    @property
    def version(self) -> int:
        """Return the version that the table has after the commit."""
        return self.before.version + 1 if self.before else 1

    @property
    def is_empty(self) -> bool:
        """Return whether there is nothing to commit."""
        return not self.ranges and not self.idle and not self.overridden


def plan_load(
    bootstrap: Bootstrap,
    base: Base,
    limits: Limits,
    kind: Kind = "load",
    sizes: FileSizes = FileSizes(),  # noqa: B008  # Frozen.
) -> LoadPlan:
    """Divide the offsets within `limits` into ranges for tasks, with files of about `sizes`."""
    described, starts, ends = base.described, limits.starts, limits.ends
    planned = ranges(
        described.topic,
        starts,
        ends,
        offsets_max=OFFSETS_PER_TASK,
        topic_id=described.topic_id,
    )
    of_logs = log_bytes(bootstrap, [described.topic] if planned else [])
    sizes_of_logs = of_logs.get(described.topic, {})
    positions = base.positions or {}
    return LoadPlan(
        described=described,
        before=base.before,
        digest=base.digest,
        overridden=base.overridden,
        bootstrap=bootstrap,
        load_id=uuid.uuid4().hex,
        limits=limits,
        ranges=split(planned, described.bounds, sizes_of_logs, split_bytes=sizes.file_bytes),
        idle=[p for p in sorted(starts) if p not in positions and starts[p] == ends[p]],
        kind=kind,
    )
