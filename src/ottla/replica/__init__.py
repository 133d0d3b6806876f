"""The pure cores of replication: ends, high watermarks, truncation and ISR of one partition.

`transition` decides which role a state gives a broker; `leader` (with its rules in `term`) and
`follower` are those roles, new for each leader epoch; `effects` is what they ask their shell to do;
`isr` and `negotiation` are how a leader changes the ISR in the store. Broker, simulator and
random walk use the same cores.
"""
