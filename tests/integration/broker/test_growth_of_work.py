"""The work for a request grows with its elements, and not with their square.

Work is counted in function calls, of Python and of C, so that the figure does not depend on the
machine. `python -m bench slow_requests` measures time, and finds what C does without a call.
"""

import asyncio
import sys

import pytest
from rig.large_requests import TOPIC, growing

from ottla.base.settings import BrokerSettings
from ottla.broker.process.broker import Broker
from ottla.coordination.memory.memory import MemoryStore
from ottla.storage.disk.memory_filesystem import MemoryFileSystem
from ottla.testing.clock import ManualClock
from ottla.wire.api import ApiKey
from ottla.wire.frames import encode_request
from ottla.wire.messages.acls import AclCreation, CreateAclsRequest
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.topics import CreatableTopic, CreateTopicsRequest
from tests.integration.broker.inprocess import SETTINGS, Caller

pytestmark = pytest.mark.timeout(1200)

# Both are served in slices, and have so many bytes that they are decoded in steps.
FEW, MANY = 600, 1_200
GROWTH_MAX = 2.5
AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:x",
}
# Everything is open but topics: what a client may ask of them is decided one by one.
TOPICS_DENIED = {
    "authorizer.class.name": AUTHORIZER["authorizer.class.name"],
    "allow.everyone.if.no.acl.found": "true",
}
DENY_TOPICS = AclCreation(
    resource_type=2,
    resource_name="*",
    resource_pattern_type=3,
    principal="User:*",
    host="*",
    operation=2,
    permission_type=2,
)
# Calls that no element makes: the turns of the loop until the answer has come.
CALLS_MIN = 3_000
TURNS = 40
# Their first request makes topics, which the second finds.
CHANGING = {ApiKey.CREATE_TOPICS, ApiKey.CREATE_PARTITIONS}


class Counted:
    """Counts the calls of functions in this thread while it is open."""

    def __enter__(self):
        self.calls = 0
        sys.setprofile(self._count)
        return self

    def __exit__(self, *_):
        sys.setprofile(None)

    def _count(self, _frame, event, _argument):
        if event in ("call", "c_call"):
            self.calls += 1


async def calls_for(broker, sent):
    """The calls until a request is answered or refused, or others would have been."""
    reader, writer = await asyncio.open_connection("127.0.0.1", broker.port)
    await asyncio.sleep(0)
    answer = asyncio.ensure_future(reader.read(1))
    with Counted() as counted:
        writer.write(sent)
        quiet = before = 0
        while not answer.done() and quiet < TURNS:
            await asyncio.sleep(0)
            # A turn of an idle loop takes a dozen calls.
            quiet = quiet + 1 if counted.calls - before < 40 else 0
            before = counted.calls
    answer.cancel()
    writer.close()
    await asyncio.gather(answer, return_exceptions=True)
    return counted.calls


def encoded(each, count, *, same):
    parts = encode_request(each.request(count, same=same), each.version, 1, "t")
    return b"".join(map(bytes, parts))


def first_and_last(lists):
    """Each list of an API in the first and in the last version that has it."""
    versions = {}
    for each in lists:
        versions.setdefault((each.api, each.path), []).append(each)
    return [each for found in versions.values() for each in {found[0], found[-1]}]


async def growth(broker, each, *, same):
    few, many = [await calls_for(broker, encoded(each, n, same=same)) for n in (FEW, MANY)]
    return 1.0 if many < CALLS_MIN else many / few


@pytest.mark.parametrize(
    "security", [{}, AUTHORIZER, TOPICS_DENIED], ids=["allowed", "denied", "topics denied"]
)
def test_twice_the_elements_are_at_most_two_and_a_half_times_the_work(security):
    """In every list of every API, in the first and the last version that has it.

    With different names and with one name, for a client that may do everything, for one that may
    do nothing, and for one that may do nothing with topics.
    """

    async def main():
        broker = Broker(
            BrokerSettings({**SETTINGS, **security, "auto.create.topics.enable": "false"}),
            clock=ManualClock(),
            filesystem=MemoryFileSystem(),
            store=MemoryStore(),
        )
        await broker.start()
        client = Caller(broker, *await asyncio.open_connection("127.0.0.1", broker.port))
        own = CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1)
        if not security:
            await client.call(CreateTopicsRequest(topics=[own]), 7)
        if security is TOPICS_DENIED:
            await client.call(CreateAclsRequest(creations=[DENY_TOPICS]), 3)
        ranges = (await client.call(ApiVersionsRequest(), 0)).api_keys
        apis = {one.api_key: (one.min_version, one.max_version) for one in ranges}
        found = {}
        for each in first_and_last(growing(apis)):
            if each.api in CHANGING and not security:
                continue
            if security is TOPICS_DENIED and "topics" not in each.path:
                continue
            for same in (False, True):
                # What is made on first use makes the first of two dearer: measured again.
                grown = await growth(broker, each, same=same)
                if grown > GROWTH_MAX:
                    grown = await growth(broker, each, same=same)
                found[f"{each} {same}"] = grown
        await client.close()
        await broker.stop(clean=False)
        assert [
            f"{grown:.1f} times: {name}" for name, grown in found.items() if grown > GROWTH_MAX
        ] == []

    asyncio.run(main())
