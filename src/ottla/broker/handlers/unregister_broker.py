"""UnregisterBroker (64), version 0: forgets a broker that is gone for good.

From then on new internal topics do not count on it. Its replicas stay where they are until they
are moved; it is known again as soon as it registers. One that is alive is refused.
"""

import logging
from typing import TYPE_CHECKING

from ottla.base.errors import ErrorCode
from ottla.base.ids import BrokerId
from ottla.broker.cluster.registration import remove
from ottla.broker.requests.legacy import LegacyHandler
from ottla.broker.requests.request import RequestContext
from ottla.wire.api import ApiKey
from ottla.wire.messages.unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)

if TYPE_CHECKING:
    from ottla.broker.process.broker import Broker

_log = logging.getLogger(__name__)


async def handle(
    broker: "Broker", _request: RequestContext, body: UnregisterBrokerRequest
) -> UnregisterBrokerResponse:
    """Forget the broker. Raises OttlaError."""
    await remove(broker.store, BrokerId(body.broker_id))
    _log.info("broker %d was removed from the cluster", body.broker_id)
    return UnregisterBrokerResponse(error_message=None)


def on_error(
    _body: UnregisterBrokerRequest, code: ErrorCode, message: str | None, _version: int
) -> UnregisterBrokerResponse:
    """The error for the request as a whole."""
    return UnregisterBrokerResponse(error_code=code, error_message=message)


HANDLER = LegacyHandler(ApiKey.UNREGISTER_BROKER, 0, 0, handle)
