"""Transactions on real Kafka while producers are killed and brokers bounced: are exactly the committed ones read?

    python -m aioproducer.testing.transactions --kafka 4.3.1

A process (``worker``) commits and aborts transactions, and writes down each step before and after it takes it. It is
killed at random moments and started again under the same ``transactional.id``, or stopped and woken when another has
taken its place (``workers``); brokers crash or are restarted (``bounces``). In the end Kafka's own console consumer
reads with ``read_committed``, and ``judge`` compares. ``plan`` says what happens when, ``campaign`` runs it all, and
``report`` tells it.
"""
