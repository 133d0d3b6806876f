"""This broker among others: registration, connections to peers, the image of the cluster.

Begin with `membership` and `metadata_updates`; `peers` has the connections.
"""
