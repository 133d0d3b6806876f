"""Folders in a data directory that are no logs of the cluster."""

from uuid import UUID

import pytest

from ottla.base.ids import BrokerId, TopicId, TopicPartition
from ottla.broker.topics.part import strays, warn_of_strays
from ottla.metadata.image import ClusterImage, PartitionImage, TopicImage

PARTITION = PartitionImage(BrokerId(1), 0, (BrokerId(1),), (BrokerId(1),))
IMAGE = ClusterImage("c").with_topic(TopicImage("flights", TopicId(UUID(int=7)), (PARTITION,)))


def test_the_logs_of_the_cluster_are_no_strays() -> None:
    """Nor is one whose metadata file a crash took: it names no other topic."""
    assert list(strays({TopicPartition("flights", 0): UUID(int=7)}, IMAGE)) == []
    assert list(strays({TopicPartition("flights", 0): None}, IMAGE)) == []


def test_a_folder_that_was_copied_in_is_told_of_with_what_becomes_of_it() -> None:
    """Unknown topic, unknown partition, and another topic of that name."""
    copied = {
        TopicPartition("flights", 0): UUID(int=8),
        TopicPartition("flights", 5): UUID(int=7),
        TopicPartition("planes", 0): UUID(int=9),
    }
    another, partition, topic = strays(copied, IMAGE)
    assert "flights-0 holds the log of another topic" in another
    assert "under a name that ends in -stray" in another
    assert partition.startswith("the folder flights-5 belongs to no partition of this cluster")
    assert topic.startswith("the folder planes-0 belongs to no topic of this cluster")


def test_a_thousand_strays_are_not_a_thousand_lines(caplog: pytest.LogCaptureFixture) -> None:
    """Ten are named, the rest counted."""
    warn_of_strays({TopicPartition("planes", n): None for n in range(1000)}, IMAGE)
    assert len(caplog.messages) == 11
    assert "A log that was copied in is not imported" in caplog.messages[0]
    assert caplog.messages[-1] == "990 more folders are not logs of partitions of this cluster"
