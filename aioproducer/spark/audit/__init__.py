"""The delivery audit: a Spark job over topics of any size that proves what was delivered (``docs/spark.md``).

``job.audit`` is the whole audit, over data frames; ``aioproducer audit`` is the command. Every rule is a function from
data frames to a data frame of findings (``finding.py``), in its own file:

| file | rule |
|---|---|
| `offsets.py` | offsets are consecutive |
| `sequences.py` | so are the sequences of each producer and epoch |
| `transactions.py` | transactions end, in the same way in all partitions |
| `isolation.py` | readers of committed records get those, and no others |
| `ledger.py`, `records.py` | acknowledged records are there, once, where they should be; failed ones are not |
| `order.py` | records are in the order in which they were sent |
| `equal.py` | no two records are equal |
| `latencies.py`, `partitions.py`, `keys.py` | how long records took; where they went |

They start from `observations.py` (one narrow row for each record), and mostly from what is made of it: `slices.py` (one
row for each batch and stream), `batches.py`, `spans.py` (of numbers) and the doubtful rows of `ledger.py`. Where these
leave a doubt, `matching.py` looks records up. `checks.py` says what could be checked, and so what the verdict is worth.
"""
