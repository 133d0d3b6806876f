"""50,000 mutated requests, over 500 of every API: no crash, no swelling, no nonsense.

OTTLA_FUZZ_REQUESTS and OTTLA_FUZZ_SEED draw others, by hand.
"""

import asyncio
import os
import random
import struct
import sys
import time
from collections import Counter
from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from rig.broker import ottla
from rig.fuzz import Corpus, mutate
from rig.nodes import Node
from rig.probe import serves
from rig.wire_client import WireClient

from ottla.base.errors import OttlaError
from ottla.wire.api import ApiKey, api_name
from ottla.wire.frames import decode_response
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.notation import REQUESTS

REQUEST_COUNT = int(os.environ.get("OTTLA_FUZZ_REQUESTS", "50000"))
SEED = int(os.environ.get("OTTLA_FUZZ_SEED", "20261121"))
MEBIBYTE = 1 << 20
PIPELINED, CONNECTIONS = 4, 12
PATIENCE_S = 0.03
pytestmark = pytest.mark.timeout(400)


@pytest.fixture(scope="module")
def node() -> Iterator[Node]:
    with ottla() as running:
        admin = AdminClient({"bootstrap.servers": running.bootstrap, "log_level": 0})
        admin.create_topics([NewTopic("fuzz", 2, 1)])["fuzz"].result(30)
        yield running


class Fuzzer:
    """Sends mutated requests over a few connections at a time, and judges what comes back."""

    def __init__(self, port: int, corpus: Corpus, chance: random.Random) -> None:
        self.port = port
        self.corpus = corpus
        self.chance = chance
        self.made = 0
        self.seen: Counter[str] = Counter()
        self.nonsense: list[str] = []

    async def run(self) -> None:
        await asyncio.gather(*(self._work() for _ in range(CONNECTIONS)))

    def _next(self) -> tuple[int, bytes]:
        self.made += 1
        return self.made, mutate(self.chance, self.corpus.request(self.made))

    async def _work(self) -> None:
        waiting: list[tuple[int, bytes]] = []
        while waiting or self.made < REQUEST_COUNT:
            while len(waiting) < PIPELINED and self.made < REQUEST_COUNT:
                waiting.append(self._next())
            waiting = await self._talk(waiting)

    async def _talk(self, sent: list[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
        """Send all, read what comes; gives those that a closed connection left unread."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        frames = dict(sent)
        places = {correlation_id: place for place, (correlation_id, _) in enumerate(sent)}
        last = -1
        try:
            writer.write(b"".join(frame for _, frame in sent))
            while last < len(sent) - 1:
                async with asyncio.timeout(PATIENCE_S):
                    (size,) = struct.unpack(">i", await reader.readexactly(4))
                    answer = await reader.readexactly(size)
                last = places.get(self._judge(frames, answer), last)
            return []
        except TimeoutError:
            # An answer that is not due yet (a long poll, a rebalance), or a frame that claims more.
            self.seen["unanswered"] += 1
            return []
        except (asyncio.IncompleteReadError, ConnectionError):
            self.seen["closed"] += 1
            # The first unanswered request closed it; those behind it were not looked at.
            return sent[last + 2 :]
        finally:
            writer.close()

    def _judge(self, frames: dict[int, bytes], answer: bytes) -> int:
        """Read an answer as what was asked, and give its correlation id."""
        (correlation_id,) = struct.unpack_from(">i", answer)
        frame = frames.get(correlation_id)
        if frame is None:
            self.nonsense.append(f"an answer to request {correlation_id}, which was not sent")
            return 0
        api_key, version = struct.unpack_from(">hh", frame, 4)
        declared = REQUESTS.get(api_key)
        if declared is None:
            self.nonsense.append(f"an answer of unknown API {api_key}")
            return correlation_id
        low, high = declared.__versions__
        if not low <= version <= high:
            version = 0  # Only ApiVersions answers what it does not know (KIP-511).
            if api_key != ApiKey.API_VERSIONS:
                self.nonsense.append(f"{api_name(api_key)} answered an unknown version")
                return correlation_id
        try:
            decode_response(api_key, version, answer)
            self.seen["answered"] += 1
        except OttlaError as error:
            self.nonsense.append(f"{api_name(api_key)} v{version}: {error}: {answer[:80].hex()}")
        return correlation_id


def test_mutated_requests_are_answered_or_end_their_connection(node: Node) -> None:
    """Kafka's error or a closed connection; no traceback; at most 64 MiB above the idle broker."""
    chance = random.Random(SEED)
    with WireClient(node.port) as client:
        keys = client.call(ApiVersionsRequest(), 0).api_keys
    advertised = {k.api_key: (k.min_version, k.max_version) for k in keys}
    fuzzer = Fuzzer(node.port, Corpus(chance, advertised), chance)
    idle_bytes = node.process.rss_bytes()
    began_s = time.monotonic()

    asyncio.run(fuzzer.run())

    log = node.process.log.read_text(errors="replace")
    grown = (node.process.rss_peak_bytes() - idle_bytes) / MEBIBYTE
    story = (
        f"{fuzzer.made} requests, seed {SEED}, {time.monotonic() - began_s:.0f} s, {fuzzer.seen}"
    )
    sys.stdout.write(f"{story}; {grown:.1f} MiB above the idle broker at the most\n")
    assert node.process.alive()
    assert serves(node.port)
    assert fuzzer.made == REQUEST_COUNT
    assert fuzzer.nonsense == []
    assert "Traceback" not in log, log[log.index("Traceback") - 500 :][:4000]
    assert fuzzer.seen["answered"] > REQUEST_COUNT / 10
    assert grown < 64
