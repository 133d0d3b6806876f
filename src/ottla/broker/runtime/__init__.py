"""What every part of a broker may use: its clock, loop, timers and tasks, and the cluster's image.

The lowest package of `broker`; it imports none of the others. Begin with `runtime` and `view`.
"""
