"""Connections to brokers, the cluster's metadata, and coordinators.

Begin with `cluster`; `connection` and `blocking_connection` are the two transports.
"""
