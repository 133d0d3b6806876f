"""The handlers of Ottla's own APIs about clients: which topics they use, and why they wait."""

from dataclasses import dataclass

from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import cluster, shown
from ottla.broker.requests.request import RequestContext
from ottla.broker.usage import delays
from ottla.broker.usage.part import UsagePart
from ottla.security.names import AclOperation, AclResource
from ottla.wire.messages.client_use import (
    ClientDelay,
    ClientDelaysRequest,
    ClientDelaysResponse,
    ClientFailure,
    ClientUsageRequest,
    ClientUsageResponse,
    ClientUse,
    DelayReason,
    SlowRequest,
    TopicUse,
)


@dataclass(slots=True, eq=False, repr=False)
class ClientUsage(Handler):
    """ClientUsage (1031), version 0: lists the clients that produced to or fetched from topics.

    An API of Ottla, advertised to Ottla's clients only. `ottla topic users` asks all brokers.
    """

    api = Api(
        ClientUsageRequest,
        ClientUsageResponse,
        Versions(0, 0),
        needs=shown(
            lambda response: response.topics,
            AclOperation.DESCRIBE,
            AclResource.TOPIC,
            lambda topic: topic.topic,
        ),
    )

    usage: UsagePart

    async def handle(
        self, _request: RequestContext, body: ClientUsageRequest
    ) -> ClientUsageResponse:
        """Answer from the table in memory, whose limited size also limits the answer."""
        await self.usage.sweep()
        table = self.usage.table
        wanted = table.topics if body.topics is None else body.topics
        topics = {
            topic: TopicUse(topic=topic, since_ms=table.known_since(topic), uses=[])
            for topic in wanted
        }
        for one in table:
            if one.key.topic not in topics:
                continue
            topics[one.key.topic].uses.append(
                ClientUse(
                    direction=one.key.direction,
                    client_id=one.key.client_id,
                    principal=one.key.principal,
                    library=one.key.library,
                    first_ms=one.first_ms,
                    last_ms=one.last_ms,
                    size_bytes=one.bytes,
                )
            )
        return ClientUsageResponse(gap_ms=table.gap_ms, topics=list(topics.values()))


@dataclass(slots=True, eq=False, repr=False)
class ClientDelays(Handler):
    """ClientDelays (1032), version 0: explains the slow and failed requests of client ids.

    An API of Ottla, advertised to Ottla's clients only. `ottla why slow` asks all brokers.
    """

    api = Api(
        ClientDelaysRequest,
        ClientDelaysResponse,
        Versions(0, 0),
        needs=cluster(AclOperation.DESCRIBE),
    )

    usage: UsagePart

    def handle(self, _request: RequestContext, body: ClientDelaysRequest) -> ClientDelaysResponse:
        """Answer from the notes in memory, whose limited size also limits the answer."""
        found = ((name, self.usage.delays.of(name)) for name in dict.fromkeys(body.client_ids))
        return ClientDelaysResponse(
            clients=[_described(name, notes) for name, notes in found if notes is not None]
        )


def _described(client_id: str, notes: delays.DelayNotes) -> ClientDelay:
    return ClientDelay(
        client_id=client_id,
        since_ms=notes.periods[0].began_ms,
        reasons=[
            DelayReason(
                **reason._asdict(),
                first_ms=count.first_ms,
                last_ms=count.last_ms,
                count=count.count,
                total_ms=count.total_ms,
                longest_ms=count.longest_ms,
            )
            for period in notes.periods
            for reason, count in period.reasons.items()
        ],
        slowest=[
            SlowRequest(**one.reason._asdict(), at_ms=one.at_ms, took_ms=one.took_ms)
            for period in notes.periods
            for one in sorted(period.slowest, reverse=True)
        ],
        failures=[
            ClientFailure(
                api=failure.api,
                code=failure.code,
                topic=failure.topic,
                partition=failure.partition,
                first_ms=count.first_ms,
                last_ms=count.last_ms,
                count=count.count,
                detail=count.detail,
            )
            for failure, count in notes.failures.items()
        ],
    )
