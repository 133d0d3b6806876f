"""What a handler is, and what it knows of the request that it serves.

Begin with `handler` and `request`; handlers are in `broker.handlers`.
"""
