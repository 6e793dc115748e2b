"""Other clients' producers, built on this one's public package, for moving from them (``docs/migrating.md``).

aiokafka/                aiokafka's producer
"""
