"""Transactions of a producer: the state, what coordinators are asked, the public class.

Begin with `producer`, then `state`.
"""
