"""What one request was denied: the first resources are reported by name, all others are counted.

A request may name tens of thousands of resources, and a report of each costs more than the check.
"""

from ottla.broker.requests.auditing import Need
from ottla.broker.requests.request import RequestContext

# More kinds of one client the audit log does not tell apart.
_NAMED_MAX = 50


class Denials:
    """Those of one check of a request; `end` reports the ones that were counted."""

    __slots__ = ("_count", "_request")

    def __init__(self, request: RequestContext) -> None:
        self._request = request
        self._count = 0

    def add(self, need: Need) -> bool:
        """Note that `need` is not met. Whether it is one of those that are reported by name."""
        self._count += 1
        if self._count > _NAMED_MAX:
            return False
        if self._request.audit is not None:
            self._request.audit.denied(self._request, need)
        return True

    def end(self) -> int:
        """Report how many others there were, and return the number."""
        more = max(0, self._count - _NAMED_MAX)
        self._count = 0
        if more and self._request.audit is not None:
            self._request.audit.denied_more(self._request, more)
        return more
