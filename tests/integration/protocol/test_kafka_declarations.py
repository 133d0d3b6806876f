"""Our declarations against the message JSON inside Apache Kafka's jars.

Ours are written in our own notation; this is what keeps them from drifting.
"""

import tomllib
from pathlib import Path
from typing import Any

import pytest
from rig.declared import declared

from ottla.broker.process.apis import served
from ottla.wire import stored, stored_consumer_groups, stored_share_groups, stored_share_state
from ottla.wire.api import FIRST_PRIVATE_KEY, api_name
from ottla.wire.notation import Message
from tests.integration.protocol.comparison import differences
from tests.integration.protocol.kafka_json import definitions

ALLOWED = tomllib.loads(Path(__file__).with_name("kafka_differences.toml").read_text())
KAFKA_APIS = [key for key in declared() if key < FIRST_PRIVATE_KEY]
STORED = (
    stored.OffsetCommitKey,
    stored.OffsetCommitValue,
    stored.GroupMetadataKey,
    stored.GroupMetadataValue,
    stored.ConsumerProtocolSubscription,
    stored.ConsumerProtocolAssignment,
    stored_consumer_groups.ConsumerGroupMetadataKey,
    stored_consumer_groups.ConsumerGroupMetadataValue,
    stored_consumer_groups.ConsumerGroupMemberMetadataKey,
    stored_consumer_groups.ConsumerGroupMemberMetadataValue,
    stored_consumer_groups.ConsumerGroupTargetAssignmentMetadataKey,
    stored_consumer_groups.ConsumerGroupTargetAssignmentMetadataValue,
    stored_consumer_groups.ConsumerGroupTargetAssignmentMemberKey,
    stored_consumer_groups.ConsumerGroupTargetAssignmentMemberValue,
    stored_consumer_groups.ConsumerGroupCurrentMemberAssignmentKey,
    stored_consumer_groups.ConsumerGroupCurrentMemberAssignmentValue,
    stored_share_groups.ShareGroupMemberMetadataKey,
    stored_share_groups.ShareGroupMemberMetadataValue,
    stored_share_groups.ShareGroupMetadataKey,
    stored_share_groups.ShareGroupMetadataValue,
    stored_share_groups.ShareGroupTargetAssignmentMetadataKey,
    stored_share_groups.ShareGroupTargetAssignmentMetadataValue,
    stored_share_groups.ShareGroupTargetAssignmentMemberKey,
    stored_share_groups.ShareGroupTargetAssignmentMemberValue,
    stored_share_groups.ShareGroupCurrentMemberAssignmentKey,
    stored_share_groups.ShareGroupCurrentMemberAssignmentValue,
    stored_share_groups.ShareGroupStatePartitionMetadataKey,
    stored_share_groups.ShareGroupStatePartitionMetadataValue,
    stored_share_state.ShareSnapshotKey,
    stored_share_state.ShareSnapshotValue,
    stored_share_state.ShareUpdateKey,
    stored_share_state.ShareUpdateValue,
    stored.TransactionLogKey,
    stored.TransactionLogValue,
    stored.EndTxnMarker,
)


def unexpected(cls: type[Message], kafka: dict[str, Any]) -> list[str]:
    return [each for each in differences(cls, kafka) if each not in ALLOWED["differences"]]


@pytest.mark.parametrize("key", KAFKA_APIS, ids=api_name)
def test_a_request_and_its_response_are_declared_as_kafka_has_them(key: int) -> None:
    """Each field agrees in type, versions, nullability, tag, default and ignorability."""
    known = definitions()
    for cls in declared()[key]:
        assert unexpected(cls, known[cls.__name__]) == []


@pytest.mark.parametrize("cls", STORED, ids=lambda cls: cls.__name__)
def test_a_stored_record_is_declared_as_kafka_has_it(cls: type[Message]) -> None:
    """What we write to internal topics is what Kafka would read."""
    assert unexpected(cls, definitions()[cls.__name__]) == []


def test_no_version_is_served_that_kafka_calls_unstable() -> None:
    """Nor one that is not declared, but that Produce is advertised from 0 on, as by Kafka."""
    known = definitions()
    for key, api in served().items():
        if key in KAFKA_APIS:
            low, high = api.request.__versions__
            unstable = known[api.request.__name__].get("latestVersionUnstable") is True
            assert api.versions.max <= high - unstable, api.name
            assert api.versions.min >= (0 if api.name == "Produce" else low), api.name


def test_no_api_of_kafka_is_forgotten() -> None:
    """Each API is declared, or stands on the list of those left out with the reason."""
    keys = {
        d["apiKey"]: d["name"].removesuffix("Request")
        for d in definitions().values()
        if d["type"] == "request" and d["validVersions"] != "none"
    }
    undeclared = {int(key) for key in ALLOWED["undeclared"]}
    assert undeclared == set(keys) - set(KAFKA_APIS)
    assert {key: api_name(key) for key in KAFKA_APIS} == {
        key: name for key, name in keys.items() if key not in undeclared
    }


def test_every_allowed_difference_is_still_there() -> None:
    """An entry of the list that no longer names a difference is dead and must go."""
    known = definitions()
    classes: list[type[Message]] = [*STORED]
    classes += [cls for key in KAFKA_APIS for cls in declared()[key]]
    found = {each for cls in classes for each in differences(cls, known[cls.__name__])}
    assert set(ALLOWED["differences"]) == found
