"""Throughput of the embedded broker, and the cost of its connections.

broker.py              ``broker``: beside the mock cluster of librdkafka
load.py                its load: a plain producer, and small requests at a steady rate
start.py               time and memory that ``aioproducer broker`` needs to start
connections.py         ``connections``: very many idle ones, and a storm of new ones
connections_broker.py  the broker of that
connection_storm.py    the storm
"""
