"""Restarts brokers that `ottla start --brokers` runs on this machine."""

import asyncio
import os
import signal

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.system import broker_process, process_name
from ottla.client.admin import Admin
from ottla.client.common.errors import ClientError
from ottla.diagnosis.local_processes import serving

_POLL_S = 0.2


async def pids(admin: Admin) -> dict[int, int]:
    """The processes of the live brokers that run on this machine."""
    brokers = (await admin.cluster.describe()).brokers
    found = serving(one.address for one in brokers)
    return {one.broker_id: found[one.address] for one in brokers if one.address in found}


async def restart(admin: Admin, broker_id: int, timeout_s: float) -> tuple[int, int]:
    """Stop the broker in order and have it started again; its old process and its new one.

    Raises OttlaError where it is not run by `ottla start --brokers` on this machine, and
    REQUEST_TIMED_OUT.
    """
    brokers = [one.broker_id for one in (await admin.cluster.describe()).brokers]
    if broker_id not in brokers:
        raise OttlaError(
            ErrorCode.BROKER_ID_NOT_REGISTERED,
            f"there is no live broker {broker_id}; those of this cluster are"
            f" {', '.join(map(str, sorted(brokers)))}",
        )
    old = (await pids(admin)).get(broker_id)
    if old is None or process_name(old) != broker_process(broker_id):
        where = "on this machine" if old is None else f"that runs broker {broker_id} (pid {old})"
        raise OttlaError(
            ErrorCode.BROKER_ID_NOT_REGISTERED,
            f"there is no process of `ottla start --brokers` {where}: stop the broker with SIGTERM,"
            " and start it as it was started before",
        )
    os.kill(old, signal.SIGHUP)
    deadline_s = asyncio.get_running_loop().time() + timeout_s
    while (new := await _pid_now(admin, broker_id)) is None or new == old:
        if asyncio.get_running_loop().time() > deadline_s:
            raise OttlaError(
                ErrorCode.REQUEST_TIMED_OUT,
                f"broker {broker_id} is not back after {timeout_s:g} s: see the log of "
                "`ottla start`",
            )
        await asyncio.sleep(_POLL_S)
    return old, new


async def _pid_now(admin: Admin, broker_id: int) -> int | None:
    try:
        return (await pids(admin)).get(broker_id)
    except ClientError:
        # It is stopping, or is not back yet, and no other broker is known.
        return None
