"""This broker as a cluster member: registration, connections to peers, the cluster image.

Start reading with `membership` and `metadata_updates`; `peers` has the connections.
"""
