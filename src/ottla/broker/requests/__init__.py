"""Handlers, and the context of the request that a handler serves.

Begin with `handler`, whose `Api` is the declaration of an API. `needs` has the permission checks
that a declaration uses, and `portions` describes its long lists. Handlers are in `broker.handlers`.
"""
