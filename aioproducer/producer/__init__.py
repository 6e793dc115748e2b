"""The producer: from ``send`` to what the broker answered.

serialize → partition → accumulate → drain → encode → send → complete
hooks       accumulator              scheduling  exchange    sender

producer.py        KafkaProducer: what users call, its start and its end
producer_type.py   makes its methods look awaitable to mocks
record_calls.py    ``send`` and ``enqueue``: the hot path
assembly.py        the one place where it is wired
inputs.py, core.py  what a producer is made from, and what a started one consists of
admission/, parking/   records that cannot simply be appended
bulk/              many records in one call
hooks/             the user's interceptors, serializers and partitioner
accumulator/       records become batches, and wait in their partition's queue
idempotence/       sequences and epochs: the order of batches, and what answers prove
batches/           one batch, its memory and its parts
delivery/          the outcome of a batch, and the handle on it that each record has
scheduling/        which partitions may send now
windows/           how much may be under way at once (KIP-1269)
exchange/          one request, its answer, and what that means for its batches
sender/            the task that runs all this
transactions/      transactions
units/             units of work, which share transactions
diagnosis/         why records wait or have failed
loop_affinity.py   the event loop and process that a producer belongs to
metric_reporters.py   the reporters of ``metric.reporters``
"""
