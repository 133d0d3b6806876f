"""DescribeCleaner (1008), version 0: the state of this broker's log cleaner.

Ottla's own, and advertised to Ottla's own clients only: `ottla cluster health` asks all brokers.
"""

from dataclasses import dataclass

from ottla.broker.cleaning.cleaner import Cleaner
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import cluster
from ottla.broker.requests.request import RequestContext
from ottla.security.names import AclOperation
from ottla.wire.messages.describe_cleaner import (
    DescribeCleanerRequest,
    DescribeCleanerResponse,
    FailedLog,
    LastPass,
)


@dataclass(slots=True, eq=False, repr=False)
class DescribeCleaner(Handler):
    """Serves DescribeCleaner."""

    api = Api(
        DescribeCleanerRequest,
        DescribeCleanerResponse,
        Versions(0, 0),
        needs=cluster(AclOperation.DESCRIBE),
    )

    cleaner: Cleaner

    def handle(
        self, _request: RequestContext, _body: DescribeCleanerRequest
    ) -> DescribeCleanerResponse:
        """Look at all compacted logs."""
        health = self.cleaner.health()
        last = []
        if health.last is not None:
            name, outcome, at_ms = health.last
            last.append(
                LastPass(
                    topic=name.topic,
                    partition=name.partition,
                    at_ms=at_ms,
                    elapsed_ms=outcome.elapsed_ms,
                    bytes_read=outcome.bytes_read,
                    bytes_kept=outcome.bytes_kept,
                )
            )
        return DescribeCleanerResponse(
            error_message=None,
            threads=health.threads,
            logs=health.logs,
            running=health.running,
            due=health.due,
            due_bytes=health.due_bytes,
            pass_count=health.passes,
            failure_count=health.failures,
            last=last,
            failed=[
                FailedLog(
                    topic=name.topic,
                    partition=name.partition,
                    why=status.failure,
                    attempts=status.attempts,
                    since_ms=status.failed_since_ms,
                    retry_at_ms=status.retry_at_ms,
                )
                for name, status in health.failed
            ],
        )
