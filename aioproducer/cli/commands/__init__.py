"""The commands, one file each, and the parts that only one of them needs.

send.py          aioproducer send
read.py          aioproducer read
start.py         the first record to read: --from
line_output.py   writes lines to standard output, in a thread
topics.py        aioproducer topics
broker.py        aioproducer broker
collector.py     runs full garbage collections while the broker is idle
outbox.py        aioproducer outbox
perf.py          aioproducer perf
perf_stats.py    the counts of perf, and the lines it prints
perf_payload.py  the records of perf
audit.py         aioproducer audit
spark.py         aioproducer spark
demo.py          aioproducer demo
proof.py         proves that the records that were read are those that were sent
"""
