"""The network of a simulated world: hosts, links that delay and cut, transports over them.

Begin with `network`.
"""
