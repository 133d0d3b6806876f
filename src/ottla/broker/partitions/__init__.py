"""The replicas on this broker: opened, appended to, flushed together, read and closed.

Start reading with `partition` (one replica, leader or follower) and `partitions` (all replicas).
"""
