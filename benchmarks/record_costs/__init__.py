"""The cost of a part of the producer for each record, in CPU time of one process.

encode.py         ``encode``: from tables or lists to the bytes of record batches
schemas.py        ``schemas``: serializers for schema registries
observability.py  ``observability``: metrics, interceptors and tracing
"""
