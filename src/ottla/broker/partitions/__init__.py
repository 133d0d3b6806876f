"""The replicas on this broker: opened, appended to, flushed together, read from, given up.

Begin with `partition` (one replica, whatever its role) and `partitions` (all of them).
"""
