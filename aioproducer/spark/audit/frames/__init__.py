"""The data frames that rules look at, each made of the one before it.

Observations have a row for each record, and are read twice: for pieces and for counts. Pieces have a row for the
records of a batch that belong to one stream and one span of its numbers; slices and spans are sums of them, and batches
have a row for each batch. Spans compare records with delivery logs by thousands of numbers, and the ledger record by
record where a span differs.

observations.py      one narrow row for each record
pieces.py            one row for each batch, stream and span
counts.py            records counted by key, by time and by content
slices.py            one row for each batch and stream
batches.py           one row for each batch
events.py            the events of delivery logs
spans.py             spans of the numbers of a stream
suspects.py          the records that are looked at one by one
ledger.py            acknowledged and found records, one by one
bounds.py            the offsets that are audited
metrics_reports.py   the reports of a metrics topic
tables.py            the Parquet tables of an audit
matching.py          looks rows up by their keys
rows_before.py       frames of window functions
local_frame.py       small data frames from the driver
"""
