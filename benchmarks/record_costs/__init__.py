"""What each record costs: a part of the producer, in CPU time of one process, or the broker.

encode.py         ``encode``: from tables or lists to the bytes of record batches
schemas.py        ``schemas``: serializers for schema registries
observability.py  ``observability``: metrics, interceptors and tracing
broker_costs.py   ``broker-costs``: requests, batches and records at a real Kafka
"""
