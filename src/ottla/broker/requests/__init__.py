"""From the bytes of a request to the handler of its API: listeners, dispatch, quotas of clients.

Begin with `dispatch`. What a request asks for is done by `broker.handlers` and the parts below.
"""
