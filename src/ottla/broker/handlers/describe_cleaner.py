"""DescribeCleaner (1008), version 0: describes the state of this broker's log cleaner.

An API of Ottla, advertised to Ottla's clients only: `ottla cluster health` asks all brokers.
"""

from dataclasses import dataclass

from ottla.broker.cleaning.cleaner import Cleaner
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import cluster
from ottla.broker.requests.request import RequestContext
from ottla.security.names import AclOperation
from ottla.wire.messages.log_cleaning import (
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
        """Describe all compacted logs."""
        status = self.cleaner.status()
        last = []
        if status.last is not None:
            name, outcome, at_ms = status.last
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
            threads=status.threads,
            logs=status.logs,
            running=status.running,
            due=status.due,
            due_bytes=status.due_bytes,
            pass_count=status.passes,
            failure_count=status.failures,
            last=last,
            failed=[
                FailedLog(
                    topic=name.topic,
                    partition=name.partition,
                    why=failed.failure,
                    attempts=failed.attempts,
                    since_ms=failed.failed_since_ms,
                    retry_at_ms=failed.retry_at_ms,
                )
                for name, failed in status.failed
            ],
        )
