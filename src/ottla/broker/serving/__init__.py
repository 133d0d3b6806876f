"""Listeners, and the dispatcher from the bytes of a request to the handler of its API.

Only `process` imports it. Begin with `dispatch`; handlers are in `broker.handlers`.
"""
