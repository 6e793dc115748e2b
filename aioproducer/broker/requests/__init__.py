"""One request, from its last byte to its response.

processor → request_channel → request_handler → a handler → response → processor

request.py, response.py  one request, and what a handler makes of it
request_channel.py    the queue between processors and request handlers
request_handler.py    the pool of request handlers
fatal_exit_error.py   what stops their node
request_order.py, long_work.py   requests that take more than one turn of the loop
response_memory.py    how much memory responses may take
request_log.py, request_metrics.py, broker_topic_metrics.py, error_counts.py   what is counted and logged
"""
