"""Which version of an API is spoken (KIP-35)."""

import pytest

from ottla.client.common.errors import UnsupportedByBroker
from ottla.client.connection.connection import AgreedVersions, version_for
from ottla.wire.api import ApiKey
from ottla.wire.messages.api_versions import ApiVersion
from ottla.wire.messages.fetch import FetchRequest
from ottla.wire.messages.list_offsets import ListOffsetsRequest
from ottla.wire.messages.metadata import MetadataRequest
from ottla.wire.messages.produce import ProduceRequest
from ottla.wire.messages.topics import DeleteRecordsRequest


def test_the_newest_version_both_know_is_chosen() -> None:
    """Unknown APIs are passed over; those without overlap are not there."""
    chosen = AgreedVersions(
        [
            ApiVersion(api_key=ApiKey.METADATA, min_version=0, max_version=5),
            ApiVersion(api_key=ApiKey.LIST_OFFSETS, min_version=90, max_version=99),
            ApiVersion(api_key=30_000, min_version=0, max_version=1),
        ]
    )
    assert chosen.get(MetadataRequest.__api_key__) == 5
    assert ListOffsetsRequest.__api_key__ not in chosen
    assert 30_000 not in chosen


def test_versions_that_name_topics_by_id_alone_are_not_used() -> None:
    """Fetch 13 and Produce 13 (KIP-516)."""
    chosen = AgreedVersions(
        [
            ApiVersion(api_key=FetchRequest.__api_key__, min_version=4, max_version=18),
            ApiVersion(api_key=ApiKey.PRODUCE, min_version=0, max_version=13),
        ]
    )
    assert chosen.get(FetchRequest.__api_key__) == 12
    assert chosen.get(ProduceRequest.__api_key__) == 12


def test_an_api_without_common_version_is_named() -> None:
    """The error says which call cannot work with this broker."""
    with pytest.raises(UnsupportedByBroker, match="share no version of DELETE_RECORDS"):
        version_for(AgreedVersions(()), DeleteRecordsRequest.__api_key__, "h:9")
