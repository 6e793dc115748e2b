"""What tests of Kafka programs need: real brokers to run against.

Nothing here is imported by the producer, and nothing is imported on the way in: take what you need from the module
that has it (``aioproducer.testing.apache_kafka``).
"""
