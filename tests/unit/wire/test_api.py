"""The table of APIs."""

import subprocess
import sys

from ottla.wire.api import API, ApiKey


def test_the_table_agrees_with_the_classes() -> None:
    """Names, keys and flexible versions of the table are those of the declarations."""
    for key, api in API.items():
        assert api.key is key
        assert api.request.__name__ == api.name + "Request"
        assert api.response.__name__ == api.name + "Response"
        for cls in (api.request, api.response):
            assert cls.__api_key__ == key
            assert cls.__flexible__ == api.flexible_from
            assert api.max_version <= cls.__versions__[1]


def test_produce_is_advertised_from_0() -> None:
    """librdkafka decides by it whether it may compress (KAFKA-18659)."""
    assert API[ApiKey.PRODUCE].min_version == 0
    assert API[ApiKey.PRODUCE].request.__versions__ == (3, 13)


def test_two_phase_commit_is_not_offered() -> None:
    """Version 6 of InitProducerId is not stable in Kafka 4.3."""
    assert API[ApiKey.INIT_PRODUCER_ID].max_version == 5


def test_the_table_imports_no_messages() -> None:
    """A broker starts fast because each API's module is imported when it is first asked for."""
    script = (
        "import sys, ottla.wire.frames\n"
        "print([m for m in sys.modules if m.startswith('ottla.wire.messages.')])"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"
