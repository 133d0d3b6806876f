"""Transactions of a producer: the state, the requests to coordinators, the public class.

Begin with `producer`, then `state`.
"""
