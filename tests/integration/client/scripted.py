"""A broker that does what a script says, to see how the client takes it. On loopback, one port."""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Self

from ottla.base.errors import ErrorCode
from ottla.record.header import BatchHeader, read_header
from ottla.record.reader import records
from ottla.wire.api import ApiKey
from ottla.wire.codec import decode
from ottla.wire.frames import decode_request_header, encode_response
from ottla.wire.messages.api_versions import ApiVersion, ApiVersionsResponse
from ottla.wire.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from ottla.wire.messages.produce import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from ottla.wire.messages.transactions import InitProducerIdResponse
from ottla.wire.notation import REQUESTS, Message

DROP = "close the connection without an answer"
APPEND_AND_DROP = "append, then close the connection without an answer"


@dataclass(slots=True)
class Attempt:
    """One batch as it came."""

    header: BatchHeader
    values: list[bytes | None]
    outcome: ErrorCode | str


@dataclass
class ScriptedBroker:
    """Leads partition 0 of every topic. `script` holds what happens to produce requests, in turn.

    Without a line in the script it appends, checking sequences as a leader does. Whoever asks what
    `drops` holds loses the connection.
    """

    script: deque[ErrorCode | str] = field(default_factory=deque)
    attempts: list[Attempt] = field(default_factory=list)
    log: list[bytes | None] = field(default_factory=list)
    versions: dict[ApiKey, tuple[int, int]] = field(default_factory=dict)
    drops: frozenset[ApiKey] = frozenset()
    # Answers to what it does not know by itself.
    others: dict[ApiKey, Callable[[Message], Message | None]] = field(default_factory=dict)
    # Requests that are answered after `release` is set; until then nothing behind them on their
    # connection is read. With `stands_still` nothing is answered from then on.
    held: frozenset[ApiKey] = frozenset()
    release: asyncio.Event = field(default_factory=asyncio.Event)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    stands_still: bool = False
    asked_versions: list[int] = field(default_factory=list)
    port: int = 0

    async def __aenter__(self) -> Self:
        self._sequences: dict[tuple[int, int], int] = {}
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                size = int.from_bytes(await reader.readexactly(4), "big")
                frame = await reader.readexactly(size)
                if decode_request_header(frame)[0].api_key in self.held:
                    self.arrived.set()
                    await self.release.wait()
                elif self.stands_still and self.arrived.is_set():
                    await self.release.wait()
                answer = self._answer(frame)
                if answer is None:
                    break
                writer.write(answer)
        except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
            pass
        finally:
            writer.close()

    def _answer(self, frame: bytes) -> bytes | None:
        header, position = decode_request_header(frame)
        key, version = ApiKey(header.api_key), header.api_version
        if key is ApiKey.API_VERSIONS:
            self.asked_versions.append(version)
            low, high = self.versions.get(key, REQUESTS[key].__versions__)
            if not low <= version <= high:
                answer: Message | None = self._api_versions(ErrorCode.UNSUPPORTED_VERSION)
                version = 0
            else:
                answer = self._api_versions(ErrorCode.NONE)
        elif key in self.drops:
            answer = None
        else:
            request = decode(REQUESTS[key], version, frame, position)
            answers: dict[ApiKey, Callable[[Message], Message | None]] = {
                ApiKey.METADATA: self._metadata,
                ApiKey.INIT_PRODUCER_ID: lambda _: InitProducerIdResponse(
                    producer_id=77, producer_epoch=0
                ),
                ApiKey.PRODUCE: self._produce,
                **self.others,
            }
            answer = answers[key](request)
        if answer is None:
            return None
        return b"".join(encode_response(answer, key, version, header.correlation_id))

    def _api_versions(self, code: ErrorCode) -> ApiVersionsResponse:
        served = (
            ApiKey.PRODUCE,
            ApiKey.METADATA,
            ApiKey.INIT_PRODUCER_ID,
            ApiKey.API_VERSIONS,
            *self.others,
        )
        ranges = {key: REQUESTS[key].__versions__ for key in served}
        return ApiVersionsResponse(
            error_code=code,
            api_keys=[
                ApiVersion(api_key=key, min_version=low, max_version=high)
                for key, (low, high) in (ranges | self.versions).items()
            ],
        )

    def _metadata(self, request: Message) -> MetadataResponse:
        topics = getattr(request, "topics", None) or []
        return MetadataResponse(
            cluster_id="scripted",
            controller_id=1,
            brokers=[MetadataResponseBroker(node_id=1, host="127.0.0.1", port=self.port)],
            topics=[
                MetadataResponseTopic(
                    name=topic.name,
                    partitions=[
                        MetadataResponsePartition(
                            partition_index=0, leader_id=1, replica_nodes=[1], isr_nodes=[1]
                        )
                    ],
                )
                for topic in topics
            ],
        )

    def _produce(self, request: Message) -> ProduceResponse | None:
        (topic,) = request.topic_data  # type: ignore[attr-defined]
        batch = bytes(topic.partition_data[0].records)
        header = read_header(batch)
        values = [record.value for record in records(batch, 0, header)]
        outcome = self.script.popleft() if self.script else self._check_sequence(header)
        if outcome is ErrorCode.NONE or outcome == APPEND_AND_DROP:
            self._sequences[header.producer_id, header.producer_epoch] = header.last_sequence + 1
            self.log += values
        self.attempts.append(Attempt(header, values, outcome))
        if isinstance(outcome, str):
            return None
        partition = PartitionProduceResponse(
            index=0, error_code=outcome, base_offset=len(self.log) - header.record_count
        )
        return ProduceResponse(
            responses=[TopicProduceResponse(name=topic.name, partition_responses=[partition])]
        )

    def _check_sequence(self, header: BatchHeader) -> ErrorCode:
        if header.producer_id < 0:
            return ErrorCode.NONE
        expected = self._sequences.get((header.producer_id, header.producer_epoch))
        if expected is None and not any(
            known == header.producer_id for known, _ in self._sequences
        ):
            # As Kafka since KIP-360: its state of the producer may have been removed.
            return ErrorCode.NONE
        expected = expected or 0
        if header.base_sequence == expected:
            return ErrorCode.NONE
        if header.base_sequence < expected:
            return ErrorCode.DUPLICATE_SEQUENCE_NUMBER
        return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
