"""Sockets: the server side, which serves clients, and the connections to other brokers.

The server side begins in `listener`, which makes a `connection` of each socket. A connection is a
thin shell over three parts that do no I/O: `request_cutter`, `answer_order` and `pressure`, whose
table lists the states in which it reads. Its service, the broker, uses only `service`.

The other side is `exchange`, the requests and answers of one connection; it uses `frame_cutter`,
and `loop_exchange` runs it on a loop. `peer` is a broker's connection to another; `dialer` opens
it.
"""
