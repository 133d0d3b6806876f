"""The quota `controller_mutation_rate`: partitions created and deleted (KIP-599)."""

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.requests.request import RequestContext


def admit(request: RequestContext, partitions: int, *, strict: bool) -> None:
    """Count partitions before a client's request creates or deletes them.

    `strict`: the request's version has the error THROTTLING_QUOTA_EXCEEDED, which is raised while
    the quota is exceeded. Requests of older versions are served, and their answers are delayed.
    """
    throttle = request.throttle
    bucket = None if throttle is None else throttle.bucket()
    if throttle is None or bucket is None:
        return
    now_ms = throttle.now_ms()
    if not strict:
        throttle.delay(bucket.record(partitions, now_ms))
        return
    wait_ms = bucket.wait_ms(now_ms)
    if wait_ms:
        throttle.delay(wait_ms)
        raise OttlaError(
            ErrorCode.THROTTLING_QUOTA_EXCEEDED,
            "The throttling quota has been exceeded: controller_mutation_rate allows "
            f"{bucket.limit:g} partitions a second here; try again in {wait_ms} ms",
        )
    bucket.record(partitions, now_ms)
