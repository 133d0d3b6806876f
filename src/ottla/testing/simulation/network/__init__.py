"""The network of a simulated world: hosts, links that delay or block packets, and transports.

Begin with `network`.
"""
