"""Connections to brokers, metadata of the cluster, coordinators.

Begin with `cluster`; `connection` and `blocking` are the two transports.
"""
