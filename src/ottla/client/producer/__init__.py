"""The producer: batches records, sends them to leaders in order; each batch has one outcome.

Begin with `producer`, then `accumulator` and `sender`; `transactions` is the public class of a
producer's transactions, `transaction_state` the state of the open one.
"""
