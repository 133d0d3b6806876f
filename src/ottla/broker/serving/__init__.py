"""Listeners, and the dispatcher that passes each request to the handler of its API.

Only `process` imports it. Begin with `dispatch`; handlers are in `broker.handlers`.
"""
