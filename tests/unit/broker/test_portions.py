"""Long requests as several short ones: nothing is lost, and the answers are one."""

import pytest
from rig.large_requests import growing

from ottla.broker.handlers.classic_membership import JoinGroup
from ottla.broker.handlers.configs import DescribeConfigs
from ottla.broker.handlers.offset_fetch import OffsetFetch
from ottla.broker.handlers.transaction_listings import DescribeProducers
from ottla.broker.process.apis import served
from ottla.broker.requests.portions import (
    answer_once,
    division,
    edges,
    join,
    portions,
)
from ottla.wire.messages.classic_membership import JoinGroupRequest
from ottla.wire.messages.configs import DescribeConfigsRequest, DescribeConfigsResource
from ottla.wire.messages.group_offsets import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)
from ottla.wire.messages.transaction_listings import DescribeProducersRequest, TopicRequest

from .handlers.test_on_error import filled


def group(name, topics):
    """A request for the offsets of topics, by their names and numbers of partitions."""
    return OffsetFetchRequestGroup(
        group_id=name,
        topics=[
            OffsetFetchRequestTopic(name=topic, partition_indexes=list(range(count)))
            for topic, count in topics.items()
        ],
    )


def answer_to(body):
    return OffsetFetchResponse(
        groups=[
            OffsetFetchResponseGroup(
                group_id=one.group_id,
                topics=[
                    OffsetFetchResponseTopic(
                        name=topic.name,
                        partitions=[
                            OffsetFetchResponsePartition(partition_index=index)
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in one.topics
                ],
            )
            for one in body.groups
        ]
    )


@pytest.mark.parametrize(
    "groups",
    [
        {"a": {"t": 1000}},
        {"a": {f"t{n}": 3 for n in range(300)}, "b": {"t": 1}},
        {f"g{n}": {"t": 1} for n in range(600)},
        {"a": {"t": 255, "u": 257, "v": 512}, "b": {}, "c": {"t": 300}},
    ],
    ids=["one topic", "many topics", "many groups", "mixed"],
)
def test_the_answers_to_portions_are_one_answer(groups):
    """As if the request had been served in one go, and no portion is longer than it may be."""
    body = OffsetFetchRequest(groups=[group(*each) for each in groups.items()])
    divided = division(OffsetFetch.api.portions, body)
    assert divided is not None
    whole = before = None
    for portion in portions(body, divided):
        leaves = sum(len(t.partition_indexes) for g in portion.groups for t in g.topics)
        assert leaves <= divided.most
        after = edges(portion, divided)
        if whole is None:
            whole = answer_to(portion)
        else:
            join(whole, answer_to(portion), divided, before, after)
        before = after
    assert whole == answer_to(body)


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_an_error_of_a_group_in_any_portion_is_that_of_the_group(failing):
    """It has no partitions then, as if it had been asked for in one go."""
    body = OffsetFetchRequest(groups=[group("a", {"t": 700}), group("b", {"t": 1})])
    divided = division(OffsetFetch.api.portions, body)
    whole = before = None
    for number, portion in enumerate(portions(body, divided)):
        answer, after = answer_to(portion), edges(portion, divided)
        if number == failing:
            answer.groups[0] = OffsetFetchResponseGroup(group_id="a", error_code=16)
        if whole is None:
            whole = answer
        else:
            join(whole, answer, divided, before, after)
        before = after
    assert whole.groups == [
        OffsetFetchResponseGroup(group_id="a", error_code=16),
        *answer_to(body).groups[1:],
    ]


def test_a_short_request_is_not_divided():
    """Nor one without anything in its list."""
    body = OffsetFetchRequest(groups=[group("a", {"t": 200})])
    assert division(OffsetFetch.api.portions, body) is None
    assert division(OffsetFetch.api.portions, OffsetFetchRequest()) is None
    assert division(JoinGroup.api.portions, JoinGroupRequest()) is None


def test_a_resource_that_is_named_twice_is_described_once():
    """With the settings that either asks for; null asks for all, and so does an empty list."""
    body = DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(resource_type=2, resource_name=name, configuration_keys=keys)
            for name, keys in (
                ("a", ["x"]),
                ("b", None),
                ("a", ["y"]),
                ("b", ["z"]),
                ("c", ["x"]),
                ("c", []),
            )
        ]
    )
    assert list(answer_once(DescribeConfigs.api.once, body)) == []
    assert [(one.resource_name, one.configuration_keys) for one in body.resources] == [
        ("a", ["x", "y"]),
        ("b", None),
        ("c", None),
    ]


def test_a_partition_that_is_named_twice_has_its_producers_described_once():
    """Also where it is in two portions."""
    body = DescribeProducersRequest(
        topics=[
            TopicRequest(name="a", partition_indexes=[*range(200), *range(200)]),
            TopicRequest(name="a", partition_indexes=[7, 200]),
        ]
    )
    for _ in answer_once(DescribeProducers.api.once, body):
        pass
    assert [one.partition_indexes for one in body.topics] == [list(range(201))]


@pytest.mark.parametrize("version", [7, 8, 10])
def test_the_offset_of_a_partition_that_is_named_often_is_fetched_once(version):
    """Within a topic, and in two elements of one topic: an answer grows with what is committed."""
    kind = OffsetFetchRequestTopic
    topics = [
        kind(name="t", partition_indexes=[0] * 3_000 + [1]),
        kind(name="u", partition_indexes=[5]),
        kind(name="t", partition_indexes=[1, 2, 0]),
    ]
    if version < 8:
        body = OffsetFetchRequest(group_id="g", topics=topics)
    else:
        body = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=topics)])
    for _ in answer_once(OffsetFetch.api.once, body):
        pass
    found = body.topics if version < 8 else body.groups[0].topics
    assert [(one.name, one.partition_indexes) for one in found] == [("t", [0, 1, 2]), ("u", [5])]


def first_of(kind, lists):
    """The first elements of lists in each other, of a message with one element in each list."""
    low, high = kind.__versions__
    for version in range(low, high + 1):
        found, message = [], filled(kind, version)
        for one in lists:
            message = (one(message) or [None])[0]
            if message is None:
                break
            found.append(message)
        else:
            return found
    raise AssertionError(f"no version of {kind.__name__} has all of these lists")


def levels(way):
    found, of = [], way.items
    while of is not None:
        found.append(of)
        of = of.inner
    return found


def test_declared_lists_and_names_exist():
    """In request and response of one version, as deep as each other."""
    for api in served().values():
        for way in api.portions:
            found = levels(way)
            asked = first_of(api.request, [of.asked for of in found])
            answers = first_of(api.response, [of.answers for of in found])
            for of, item, answer in zip(found[:-1], asked, answers, strict=False):
                assert type(of.name(item)) is type(of.answered(answer))
                assert of.error(answer) in (0, 1)
        for once in api.once:
            kind_lists, inner = [], (once,)
            while inner:
                (one,) = inner
                kind_lists.append(one.asked)
                (*_, item) = first_of(api.request, kind_lists)
                assert one.name is None or one.name(item)
                inner = one.inner


def test_every_list_of_a_divided_request_is_in_a_portion():
    """Whatever a request of 1,000 elements asks for, its portions ask for, in its order."""
    apis = {key: api for key, api in served().items() if api.portions}
    seen = 0
    for each in growing({key: api.request.__versions__ for key, api in apis.items()}):
        body = each.request(1_000)
        divided = division(apis[each.api].portions, body)
        if divided is None:
            continue
        seen += 1
        outer, *inner = levels(divided)
        asked = [outer.asked(body)]
        got = [[one for part in portions(body, divided) for one in outer.asked(part)]]
        for of in inner:
            asked = [of.asked(one) for one in asked for one in one]
            got = [of.asked(one) for one in got for one in one]
        assert [one for own in asked for one in own] == [one for own in got for one in own]
    assert seen > len(apis)
