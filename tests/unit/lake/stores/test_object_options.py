"""Options of object stores: those of the store, and those of its connections."""

import pytest

from ottla.base.errors import OttlaError
from ottla.lake.store.objects import ObjectStore


@pytest.mark.parametrize(
    ("url", "option"),
    [
        ("s3://bucket/t", "allow_http"),
        ("s3://bucket/t", "aws_allow_http"),
        ("s3://bucket/t", "AWS_ALLOW_HTTP"),
        ("gs://bucket/t", "google_allow_http"),
        ("az://container/t", "azure_allow_http"),
    ],
)
def test_options_of_the_connection_may_have_the_prefix_of_the_store(url: str, option: str) -> None:
    """At such a name the library panicked, which no handler of errors took."""
    named = {"azure_storage_account_name": "x"} if url.startswith("az") else {}
    assert ObjectStore(url, {option: "true", **named}).client() is not None


def test_an_option_that_no_store_has_is_refused_by_its_name() -> None:
    """Without its value, which may be a secret."""
    with pytest.raises(OttlaError, match="aws_nonsense") as refused:
        ObjectStore("s3://bucket/t", {"aws_nonsense": "hidden"}).client()
    assert "hidden" not in refused.value.message
