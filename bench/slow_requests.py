"""How long other clients wait while one sends requests that cost a broker time.

First a stranger's seven on the default listener, with 10 MB of tagged fields, 60,000 names, a
pattern and one topic many times; then every list of every API in its newest version, filled to
1 MiB with different names and with one name; then names that an authorizer denies. Beside it
another connection asks for ApiVersions all the time: the longest that it waits is what others wait.
The time of the broker's processor for a request of n and of 2n elements tells how the work grows.
"""

import contextlib
import itertools
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass

from bench.figures import AT_MOST, Figure, Scale
from ottla.broker.process.apis import served
from ottla.broker.requests.portions import ELEMENTS_MAX
from ottla.wire.messages.acls import AclCreation, CreateAclsRequest
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.configs import (
    AlterableConfig,
    AlterConfigsResource,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.wire.messages.group_offsets import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
)
from ottla.wire.messages.groups import DescribeGroupsRequest
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.wire.messages.topics import CreatableTopic, CreateTopicsRequest, DeleteTopicsRequest
from ottla.wire.messages.transaction_listings import (
    DescribeTransactionsRequest,
    ListTransactionsRequest,
)
from rig.broker import ottla
from rig.frames import unsigned_varint
from rig.large_requests import TOPIC, Growing, growing
from rig.nodes import Node
from rig.probe import receive_frame
from rig.wire_client import WireClient

_WAIT_MAX_MS = 100.0
_GROWTH_MAX = 2.5
_REQUEST_BYTES = 1 << 20
_TAGS_BYTES = 10_000_000
_NAMES = 60_000
_DENIED = 4_000
_PROTECTED = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
_DENY_TOPICS = AclCreation(
    resource_type=2,
    resource_name="*",
    resource_pattern_type=3,
    principal="User:*",
    host="*",
    operation=2,
    permission_type=2,
)
# Requests that are answered only when something happens have no answer here.
_PATIENCE_S = 30.0
# Work below this is the broker's own, beside requests.
_WORK_MIN_S = 0.2


@dataclass(slots=True)
class Cost:
    """What one request cost: the longest wait of others, and the time of the processor."""

    wait_ms: float
    work_s: float


def measure(scale: Scale) -> list[Figure]:
    with ottla(settings={"auto.create.topics.enable": "false"}) as node:
        with WireClient(node.port) as client:
            own = CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1)
            client.call(CreateTopicsRequest(topics=[own]), 7)
        figures = [_figure(name, _cost(node, frame)) for name, frame in _stranger(node)]
        figures += _every_list(node, scale.pick(_REQUEST_BYTES, _REQUEST_BYTES // 16))
    with ottla(settings=_PROTECTED) as node:
        with WireClient(node.port) as client:
            client.call(CreateAclsRequest(creations=[_DENY_TOPICS]), 3)
        figures += [_figure(name, _cost(node, frame)) for name, frame in _without_rights(node)]
    return figures


def _figure(name: str, cost: Cost) -> Figure:
    note = f"{cost.work_s:.2f} s of the processor"
    return Figure(f"others wait: {name}", cost.wait_ms, "ms", AT_MOST, _WAIT_MAX_MS, note)


def _stranger(node: Node) -> Iterator[tuple[str, bytes]]:
    with WireClient(node.port) as client:
        names = [f"unknown-{index}" for index in range(_NAMES)]
        plain = client.frame(MetadataRequest(topics=[]), 12)
        count = _TAGS_BYTES // 2
        tags = unsigned_varint(count) + b"\x63\0" * count
        # The header ends behind the client id, with the number of its tagged fields.
        header_end = plain.index(b"rig") + 3
        in_header = plain[4:header_end] + tags + plain[header_end + 1 :]
        for name, body in (("body", plain[4:-1] + tags), ("header", in_header)):
            yield f"10 MB of tagged fields in the {name}", len(body).to_bytes(4) + body
        topics = [MetadataRequestTopic(name=name) for name in names]
        asked = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
        yield "Metadata, 60,000 unknown names", client.frame(asked, 12)
        yield "DescribeGroups, 60,000", client.frame(DescribeGroupsRequest(groups=names), 5)
        ids = DescribeTransactionsRequest(transactional_ids=names)
        yield "DescribeTransactions, 60,000", client.frame(ids, 0)
        pattern = "(" * 3_000 + "a" + ")" * 3_000
        listed = ListTransactionsRequest(transactional_id_pattern=pattern)
        yield "ListTransactions, a nested pattern", client.frame(listed, 2)
        own = DescribeConfigsResource(resource_type=2, resource_name=TOPIC)
        configs = DescribeConfigsRequest(resources=[own] * 10_000)
        yield "DescribeConfigs, one topic 10,000 times", client.frame(configs, 4)


def _without_rights(node: Node) -> Iterator[tuple[str, bytes]]:
    """Of a client that may do nothing with topics, and everything else."""
    with WireClient(node.port) as client:
        names = [f"hidden-{index}" for index in range(_DENIED)]
        offsets = OffsetFetchRequest(
            group_id="own",
            topics=[OffsetFetchRequestTopic(name=each, partition_indexes=[0]) for each in names],
        )
        yield "OffsetFetch, 4,000 denied topics", client.frame(offsets, 7)
        own = OffsetFetchRequestGroup(group_id="own", topics=None)
        many = OffsetFetchRequest(groups=[own] * _NAMES)
        yield "OffsetFetch, one group 60,000 times", client.frame(many, 8)
        topics = [MetadataRequestTopic(name=str(index)) for index in range(2 * _NAMES)]
        asked = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
        yield "Metadata, 120,000 denied names", client.frame(asked, 9)
        deleted = DeleteTopicsRequest(topic_names=names)
        yield "DeleteTopics, 4,000 denied names", client.frame(deleted, 5)
        alterations = [AlterableConfig(name=str(index), value="") for index in range(9_000)]
        broker = AlterConfigsResource(
            resource_type=4, resource_name="", configs=[*alterations, alterations[-1]]
        )
        altered = IncrementalAlterConfigsRequest(resources=[broker], validate_only=True)
        yield "IncrementalAlterConfigs, the last name twice", client.frame(altered, 1)


def _every_list(node: Node, request_bytes: int) -> list[Figure]:
    with WireClient(node.port) as client:
        apis = {
            one.api_key: (one.max_version, one.max_version)
            for one in client.call(ApiVersionsRequest(), 0).api_keys
        }
    waits: list[tuple[float, str]] = []
    growths: list[tuple[float, str]] = []
    for each, same in itertools.product(growing(apis), (False, True)):
        name = f"{each}{', one name' if same else ''}"
        cost, growth = _grown(node, each, request_bytes, same=same)
        waits.append((cost.wait_ms, name))
        growths.append((growth, name))
        print(f"   {name}: {cost.wait_ms:.0f} ms, {cost.work_s:.2f} s, × {growth:.2f}", flush=True)
    return [
        _worst("every list of every API: others wait", waits, "ms", _WAIT_MAX_MS),
        _worst("… : work for 2n against n elements", growths, "×", _GROWTH_MAX),
    ]


def _worst(name: str, found: list[tuple[float, str]], unit: str, most: float) -> Figure:
    found.sort(reverse=True)
    note = "; ".join(f"{value:.3g} {what}" for value, what in found[:5])
    return Figure(name, found[0][0], unit, AT_MOST, most, note)


def _grown(node: Node, each: Growing, request_bytes: int, *, same: bool) -> tuple[Cost, float]:
    """The cost of a request of so many bytes, and how much less half of it costs."""
    with WireClient(node.port) as client:
        sample = len(client.frame(each.request(1_000, same=same), each.version))
        count = max(2, 1_000 * request_bytes // max(1_000, sample))
        # Some APIs refuse more. An element may have lists of its own.
        most = served()[each.api].elements_max
        if most < ELEMENTS_MAX:
            count = min(count, most // 3)
        frames = [
            client.frame(each.request(n, same=same), each.version) for n in (count // 2, count)
        ]
    half, whole = (_cost(node, frame) for frame in frames)
    growth = whole.work_s / half.work_s if whole.work_s > _WORK_MIN_S else 1.0
    return whole, growth


def _cost(node: Node, frame: bytes) -> Cost:
    ended = threading.Event()
    waits: list[float] = []
    other = threading.Thread(target=_wait, args=(node, ended, waits))
    other.start()
    try:
        with WireClient(node.port, timeout_s=_PATIENCE_S) as client:
            while not waits:
                time.sleep(0.001)
            before_s = node.process.cpu_seconds()
            waits.clear()
            client.send(frame)
            # It may be refused, or have no answer.
            with contextlib.suppress(OSError, EOFError):
                receive_frame(client.socket)
            work_s = node.process.cpu_seconds() - before_s
    finally:
        ended.set()
        other.join()
    return Cost(max(waits, default=0.0), work_s)


def _wait(node: Node, ended: threading.Event, waits: list[float]) -> None:
    """Ask for the least that there is, over and over."""
    with WireClient(node.port) as client:
        while not ended.is_set():
            began_s = time.monotonic()
            client.call(ApiVersionsRequest(), 0)
            waits.append((time.monotonic() - began_s) * 1000)
            time.sleep(0.002)
