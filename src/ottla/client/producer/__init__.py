"""Records on their way to the leaders: in batches, in order; each batch has one outcome.

Begin with `producer`, then `accumulator` and `sender`; `transactions` is the public class of a
producer's transactions, `transaction_state` what it knows of the open one.
"""
