"""The six steps of CONTRIBUTING, "Add an API", on a copy of the source: three files are enough."""

import shutil
import struct
from pathlib import Path

from rig.broker import ottla
from rig.frames import unsigned_varint
from rig.paths import ROOT
from rig.probe import connect, receive_frame

from ottla.client.sync import Producer

KEY = 1099
MESSAGE = '''
"""OffsetCount: how many offsets a partition has."""

from ottla.wire.notation import Message, int16, int32, int64, string


class OffsetCountRequest(Message, api_key=1099, versions="0", flexible="0+"):
    """An OffsetCount request."""

    topic: str = string()
    partition: int = int32()


class OffsetCountResponse(Message, api_key=1099, versions="0", flexible="0+"):
    """An OffsetCount response."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    count: int = int64()
'''
HANDLER = '''
"""OffsetCount (1099), version 0: how many offsets a partition has."""

from dataclasses import dataclass

from ottla.broker.partitions.partitions import Partitions
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import resource
from ottla.broker.requests.request import RequestContext
from ottla.security.names import AclOperation, AclResource
from ottla.wire.messages.offset_count import OffsetCountRequest, OffsetCountResponse


@dataclass(slots=True, eq=False, repr=False)
class OffsetCount(Handler):
    """Serves OffsetCount."""

    api = Api(
        OffsetCountRequest,
        OffsetCountResponse,
        Versions(0, 0),
        needs=resource(AclOperation.DESCRIBE, AclResource.TOPIC, lambda body: body.topic),
    )

    partitions: Partitions

    async def handle(
        self, _request: RequestContext, body: OffsetCountRequest
    ) -> OffsetCountResponse:
        """Count. Raises OttlaError."""
        partition = self.partitions.get(body.topic, body.partition)
        return OffsetCountResponse(
            count=partition.log.log_end_offset - partition.log_start_offset
        )
'''
PROTECTED = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "false",
}
UNKNOWN_TOPIC_OR_PARTITION = 3
TOPIC_AUTHORIZATION_FAILED = 29


def source_with_the_api(folder: Path) -> Path:
    """A copy of `src` with a message, a handler, and two lines that build it."""
    source = folder / "src"
    shutil.copytree(ROOT / "src", source)
    package = source / "ottla"
    (package / "wire/messages/offset_count.py").write_text(MESSAGE.lstrip())
    (package / "broker/handlers/offset_count.py").write_text(HANDLER.lstrip())
    apis = package / "broker/process/apis.py"
    text = apis.read_text()
    first = text.index("from ottla.broker.handlers.")
    text = (
        f"{text[:first]}from ottla.broker.handlers.offset_count import OffsetCount\n{text[first:]}"
    )
    assert text.count("    most: list[Handler] = [\n") == 1
    built = "    most: list[Handler] = [\n        OffsetCount(partitions),\n"
    apis.write_text(text.replace("    most: list[Handler] = [\n", built))
    return source


def answer(port: int, topic: str) -> tuple[int, int]:
    """Error code and count, by bytes that know nothing of Ottla's messages."""
    name = topic.encode()
    header = struct.pack(">hhih", KEY, 0, 7, 4) + b"test" + b"\x00"
    body = unsigned_varint(len(name) + 1) + name + struct.pack(">i", 0) + b"\x00"
    with connect(port, 60.0) as client:
        client.sendall(struct.pack(">i", len(header) + len(body)) + header + body)
        frame = receive_frame(client)
    correlation_id, _tags, _throttled_ms, error, count = struct.unpack_from(">ibihq", frame)
    assert correlation_id == 7
    return error, count


def test_an_added_api_is_served_checked_and_answered_when_it_fails(tmp_path: Path) -> None:
    """By its handler alone, without a table of APIs, rights or errors elsewhere."""
    source = source_with_the_api(tmp_path)
    with ottla(source=source) as node:
        with Producer(f"127.0.0.1:{node.port}") as producer:
            for value in (b"a", b"b", b"c"):
                producer.send("three", value)
        assert answer(node.port, "three") == (0, 3)
        assert answer(node.port, "missing")[0] == UNKNOWN_TOPIC_OR_PARTITION
    with ottla(source=source, settings=PROTECTED) as node:
        assert answer(node.port, "three")[0] == TOPIC_AUTHORIZATION_FAILED
