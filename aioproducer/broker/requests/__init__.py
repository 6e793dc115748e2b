"""One request, from its last byte to its response.

A processor puts each request into the request channel, a bounded queue; while all handlers are idle it calls them
itself. A request handler takes the request out and passes it to the handler of its API, which never waits: it responds
at once, leaves the request to a purgatory, or returns steps, which long work runs in slices. Before the response is
encoded the quotas may throttle the client. The response returns to the processor of the connection, which writes it;
then the request is measured and logged.

request.py, response.py  one request, and how it ends
request_channel.py    the queue between processors and request handlers
request_handler.py    the pool of request handlers
fatal_exit_error.py   the error that stops the node
request_order.py, long_work.py   requests that take several turns of the loop
slices.py, fair_queue.py   how all work that takes several turns of the loop shares it
response_memory.py    how much memory responses may take
request_log.py, request_metrics.py, broker_topic_metrics.py, error_counts.py   logging and metrics
"""
