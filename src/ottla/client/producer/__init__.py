"""Records on their way to the leaders: in batches, in order; each batch has one outcome.

Begin with `producer`, then `accumulator` and `sender`.
"""
