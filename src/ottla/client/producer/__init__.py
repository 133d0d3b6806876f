"""Records on their way to their leaders: into batches, in order, each told once what became of it.

Begin with `producer`, then `accumulator` and `sender`.
"""
