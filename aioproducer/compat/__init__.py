"""Other clients' producers, on this one, over the public package alone: for who moves over (``docs/migrating.md``).

aiokafka/                aiokafka's producer
"""
