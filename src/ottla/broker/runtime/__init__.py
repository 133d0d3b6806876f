"""The runtime that every part of a broker may use: clock, loop, timers, tasks and cluster image.

The lowest package of `broker`; it imports none of the others. Begin with `runtime` and `view`.
"""
