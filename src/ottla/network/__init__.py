"""Sockets: the server's connections, where clients' requests come in, and those to other brokers.

The server's side begins in `listener`, which makes a `connection` of each socket. A connection is a
thin shell over three parts that do no I/O: `request_cutter`, `answer_order` and `pressure`, whose
table says in which states it reads. Its service, the broker, sees `service` alone.

The other side is `exchange`, the requests and answers of one connection, with `frame_cutter` under
it and `loop_exchange` over it. `peer` is a broker's connection to another; `dialer` opens it.
"""
