"""What a handler is, and what it knows of the request that it serves.

Begin with `handler`, whose `Api` is the declaration of an API; `needs` has the checks, `portions`
the lists that such a declaration names. Handlers are in `broker.handlers`.
"""
