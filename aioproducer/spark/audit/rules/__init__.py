"""The rules of an audit, and the figures that it reports: functions of the data frames in ``frames/``.

A rule returns rows of ``finding.FINDING_SCHEMA``.

sequences.py         the sequences of each producer and epoch are consecutive
offsets.py           offsets are consecutive
transactions.py      transactions end in the same way in all partitions
isolation.py         readers of committed records get those, and no others
records.py           acknowledged records are there, once, where they should be; failed ones are not
order.py             records are in the order in which they were sent
incomplete_logs.py   delivery logs with lines that are lost or torn
equal.py             no two records are equal, if asked for
keys.py              keys counted, if asked for
latencies.py         how long records took
partitions.py        partitions compared
producers.py         producers counted
batch_sizes.py       how full batches are
findings.py          rows of rules as findings
examples.py          counts of findings, with examples
"""
