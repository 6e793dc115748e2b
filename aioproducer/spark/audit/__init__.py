"""The delivery audit: a Spark job over topics of any size that proves what was delivered (``docs/spark.md``).

``job.audit`` is the whole of it, over data frames; ``aioproducer audit`` the command. Every rule is a function from
data frames to a data frame of findings (``finding.py``), in a file of its own:

| file | rule |
|---|---|
| `offsets.py` | offsets follow each other |
| `sequences.py` | so do the sequences of each producer and epoch |
| `transactions.py` | transactions end, and as one |
| `isolation.py` | readers of committed records are given those, and no others |
| `ledger.py`, `records.py` | what was acknowledged is there, once, where it was said to be; what failed is not |
| `order.py` | records are in the order in which they were sent |
| `equal.py` | records differ |
| `latencies.py`, `partitions.py`, `keys.py` | how long they took; where they went |

They start from `observations.py` (one narrow row for each record) or `batches.py` (one for each batch).
"""
