"""Handlers, and the context of the request that a handler serves.

Begin with `handler`, whose `Api` is the declaration of an API; `needs` has the checks, `portions`
the lists that such a declaration names. Handlers are in `broker.handlers`.
"""
