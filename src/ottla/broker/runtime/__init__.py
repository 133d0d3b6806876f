"""The runtime that every part of a broker may use: clock, loop, timers, tasks and cluster image.

This is the lowest package of `broker`, and imports no other package of it. Begin with `runtime` and
`view`.
"""
