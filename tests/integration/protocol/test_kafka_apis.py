"""The list of Kafka's APIs that the documents go by, against a broker of Kafka's."""

import tomllib
from pathlib import Path

import pytest
from rig import kafka as kafka_rig
from rig.wire_client import WireClient

from ottla.wire.messages.api_versions import ApiVersionsRequest

LIST = Path(__file__).parents[3] / "docs" / "kafka_apis.toml"


def test_the_list_of_apis_is_kafkas():
    """Every API of a broker's listener with its versions: what is missing here is in the list.

    That those not served, and versions not served, stand in `docs/reference/differences.md` is
    seen to when the document is made, which a test of the documents compares.
    """
    if reason := kafka_rig.available():
        pytest.skip(reason)
    listed = tomllib.loads(LIST.read_text()).values()
    with kafka_rig.kafka(quick=True) as kafka, WireClient(kafka.port) as client:
        request = ApiVersionsRequest(client_software_name="rig", client_software_version="1")
        told = client.call(request, 4).api_keys
    assert {each.api_key: [each.min_version, each.max_version] for each in told} == {
        api["key"]: api["versions"] for api in listed if api.get("always", True)
    }
