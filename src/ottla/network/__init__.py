"""Sockets: the server side, which serves clients, and the connections to other brokers.

Start reading the server side in `listener`, which creates a `connection` for each socket. A
connection is a thin shell over three parts that do no I/O: `request_cutter`, `answer_order` and
`pressure`, which has the table of the connection's states. A connection knows its service, the
broker, only through the interface in `service`.

The client side is `exchange`: the requests and answers of one connection. It uses
`frame_cutter`, and `loop_exchange` runs it on an event loop. `peer` is a connection from this
broker to another one, and `dialer` opens it.
"""
