"""Segment files of a replica, read directly where a task can see the log directory."""
