"""Finds folders in the log directories that belong to no partition, and warns of them."""

import logging
from collections.abc import Iterator, Mapping
from uuid import UUID

from ottla.base.ids import TopicPartition
from ottla.metadata.image import ClusterImage
from ottla.storage.files.partition_metadata import is_damaged

_log = logging.getLogger(__name__)

# Warnings per start: a copied data directory has thousands of such folders.
_WARNINGS_MAX = 10

_NO_IMPORT = (
    "A log that was copied in is not imported: produce its records into a topic, or start a broker "
    "on a copy of the whole data directory"
)


def warn_of_strays(on_disk: Mapping[TopicPartition, UUID | None], image: ClusterImage) -> None:
    """Log a warning for each folder of `on_disk` that is not the log of a partition in `image`."""
    sentences = list(strays(on_disk, image))
    for sentence in sentences[:_WARNINGS_MAX]:
        _log.warning("%s. %s", sentence, _NO_IMPORT)
    if len(sentences) > _WARNINGS_MAX:
        _log.warning(
            "%d more folders are not logs of partitions of this cluster",
            len(sentences) - _WARNINGS_MAX,
        )


def strays(on_disk: Mapping[TopicPartition, UUID | None], image: ClusterImage) -> Iterator[str]:
    """A sentence for each folder that is not the log of a partition in `image`.

    `on_disk` maps partitions that have a folder to the topic id that their metadata file names.
    """
    for partition, topic_id in sorted(on_disk.items()):
        topic = image.topics.get(partition.topic)
        if topic is None or partition.partition >= len(topic.partitions):
            what = "topic" if topic is None else "partition"
            yield (
                f"the folder {partition} belongs to no {what} of this cluster and serves nothing; "
                "it is left as it is, unless its topic was deleted while this broker was down"
            )
        elif topic_id not in (None, topic.id) and not is_damaged(topic_id, topic.id):
            yield (
                f"the folder {partition} holds the log of another topic (id {topic_id}) than this "
                f"cluster's {partition.topic} (id {topic.id}); it is kept under a name that ends "
                "in -stray, and an empty log takes its place"
            )
