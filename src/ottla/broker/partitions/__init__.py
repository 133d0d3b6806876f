"""The replicas on this broker: opened, appended to, flushed together, read and closed.

Begin with `partition` (one replica, whatever its role) and `partitions` (all of them).
"""
