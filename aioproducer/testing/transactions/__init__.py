"""Campaigns of transactions on real Kafka: producers are killed and brokers bounced, and a reader must see exactly the
committed transactions.

    python -m aioproducer.testing.transactions --kafka 4.3.1

A worker process commits and aborts transactions, and writes each step to its journal. It is killed at random moments
and started again with the same ``transactional.id``, or stopped, and woken after another has taken its place. Brokers
crash or are restarted meanwhile. In the end Kafka's own console consumer reads with ``read_committed``.

    __main__.py          the command line
    campaign.py          runs a campaign
    plan.py              the transactions, and when their producer is interrupted
    worker.py            the process that commits and aborts transactions
    workers.py           starts, follows, interrupts and replaces workers
    bounces.py           crashes and restarts brokers
    journal.py           the steps of the workers, and the outcome of each transaction
    judge.py             compares the journal with the records that were read
    audit.py             the delivery audit as a second judge
    report.py            the report of a campaign
"""
