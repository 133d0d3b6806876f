"""Histories of what clients did to a cluster, and a checker of them.

The names of anomalies are Jepsen's (`jepsen.tests.kafka`), where it has one. The same checker
judges simulated and real clusters: both write the same lines.
"""
