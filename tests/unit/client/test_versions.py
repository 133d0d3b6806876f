"""Which version of an API is spoken (KIP-35)."""

import pytest

from ottla.client.connection.versions import negotiate, version_for
from ottla.client.errors import UnsupportedByBroker
from ottla.wire.api import ApiKey
from ottla.wire.messages.api_versions import ApiVersion


def test_the_newest_version_both_know_is_chosen() -> None:
    """Unknown APIs are passed over; those without overlap are not there."""
    chosen = negotiate(
        [
            ApiVersion(api_key=ApiKey.METADATA, min_version=0, max_version=5),
            ApiVersion(api_key=ApiKey.LIST_OFFSETS, min_version=90, max_version=99),
            ApiVersion(api_key=30_000, min_version=0, max_version=1),
        ]
    )
    assert chosen == {ApiKey.METADATA: 5}


def test_versions_that_name_topics_by_id_alone_are_not_used() -> None:
    """Fetch 13 and Produce 13 (KIP-516)."""
    chosen = negotiate(
        [
            ApiVersion(api_key=ApiKey.FETCH, min_version=4, max_version=18),
            ApiVersion(api_key=ApiKey.PRODUCE, min_version=0, max_version=13),
        ]
    )
    assert chosen == {ApiKey.FETCH: 12, ApiKey.PRODUCE: 12}


def test_an_api_without_common_version_is_named() -> None:
    """The error says which call cannot work with this broker."""
    with pytest.raises(UnsupportedByBroker, match="share no version of DELETE_RECORDS"):
        version_for({}, ApiKey.DELETE_RECORDS, "h:9")
