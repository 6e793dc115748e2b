"""The data frames that rules look at, each made of the one before it.

Observations have a row for each record, slices one for the records of a batch that belong to one stream, and batches
one for each batch. Spans compare records with delivery logs by thousands of numbers, and the ledger record by record
where a span differs.

observations.py      one narrow row for each record
slices.py            one row for each batch and stream
batches.py           one row for each batch
events.py            the events of delivery logs
spans.py             spans of the numbers of a stream
ledger.py            acknowledged and found records, one by one
bounds.py            the offsets that are audited
metrics_reports.py   the reports of a metrics topic
tables.py            the Parquet tables of an audit
matching.py          looks rows up by their keys
rows_before.py       frames of window functions
local_frame.py       small data frames from the driver
"""
