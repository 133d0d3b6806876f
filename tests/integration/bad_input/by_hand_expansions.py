"""Run by hand: how long others wait while clients send batches that must be expanded.

python -m tests.integration.bad_input.by_hand_expansions --clients 8 --seconds 15

Each of the clients sends a gzip batch of 30 KB, which is 30 MiB, to a compacted topic, again and
again; another one asks for metadata meanwhile. Alone on the machine the figures mean something.
"""

import argparse
import contextlib
import threading
import time

from rig.broker import ottla
from rig.topics import topic_maker
from rig.wire_client import WireClient

from ottla.record.builder import BatchBuilder
from ottla.record.compression import Compression
from ottla.wire.messages.metadata import MetadataRequest
from ottla.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)


def bomb(topic: str) -> ProduceRequest:
    builder = BatchBuilder(compression=Compression.GZIP)
    builder.append(int(time.time() * 1000), b"key", bytes(30 << 20))
    data = PartitionProduceData(index=0, records=bytes(builder.build()))
    return ProduceRequest(
        acks=1,
        timeout_ms=60_000,
        topic_data=[TopicProduceData(name=topic, partition_data=[data])],
    )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--clients", type=int, default=8)
    options.add_argument("--seconds", type=float, default=15.0)
    chosen = options.parse_args()
    with ottla() as node, contextlib.ExitStack() as stack:
        topic = topic_maker(node.bootstrap, "compacted")(**{"cleanup.policy": "compact"})
        request, ended, counts = bomb(topic), threading.Event(), [0] * chosen.clients

        def attack(number: int) -> None:
            with WireClient(node.port) as client:
                while not ended.is_set():
                    client.call(request, 9)
                    counts[number] += 1

        def stop() -> None:
            ended.set()
            for thread in threads:
                thread.join()

        threads = [threading.Thread(target=attack, args=(n,)) for n in range(chosen.clients)]
        stack.callback(stop)
        for thread in threads:
            thread.start()
        waits_ms = []
        until_s = time.perf_counter() + chosen.seconds
        with WireClient(node.port) as admin:
            while time.perf_counter() < until_s:
                asked_s = time.perf_counter()
                admin.call(MetadataRequest(topics=[]), 9)
                waits_ms.append((time.perf_counter() - asked_s) * 1000)
                time.sleep(0.01)


if __name__ == "__main__":
    main()
