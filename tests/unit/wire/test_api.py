"""Keys of APIs, and the declarations that they find."""

import subprocess
import sys

from rig.declared import declared

from ottla.wire.api import FIRST_PRIVATE_KEY, ApiKey, api_name, key_name
from ottla.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from ottla.wire.notation import FLEXIBLE_FROM, REQUESTS, RESPONSES


def test_a_key_finds_what_is_declared_with_it() -> None:
    """A request and a response of one name, in the same versions, flexible from the same one on."""
    for key, (request, response) in declared().items():
        assert (request.__name__, response.__name__) == (
            api_name(key) + "Request",
            api_name(key) + "Response",
        )
        for cls in (request, response):
            assert cls.__api_key__ == key
            assert cls.__flexible__ == FLEXIBLE_FROM[key]
            assert cls.__versions__ == request.__versions__


def test_keys_have_kafkas_names() -> None:
    """Of each declared API but Ottla's own; an API that is not declared has a number."""
    for key in declared():
        assert key >= FIRST_PRIVATE_KEY or key_name(key) == ApiKey(key).name
    assert (api_name(2), key_name(2)) == ("ListOffsets", "LIST_OFFSETS")
    assert key_name(ApiKey.VOTE) == "API 52"


def test_the_first_declaration_of_a_key_is_that_of_the_api() -> None:
    """A newer one, such as a test's, takes no one's place."""
    assert (REQUESTS[2], RESPONSES[2]) == (ListOffsetsRequest, ListOffsetsResponse)


def test_frames_import_no_messages() -> None:
    """A program starts fast because each API's module is imported by what sends or serves it."""
    script = (
        "import sys, ottla.wire.frames\n"
        "print([m for m in sys.modules if m.startswith('ottla.wire.messages.')])"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"
