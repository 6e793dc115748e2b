"""Reads topics: the driver plans ranges of offsets, and each task reads some of them.

Options and columns are checked first. A batch or a stream looks up the cluster's offsets, and rules divide them among
tasks. A task reads its ranges, and makes Arrow record batches of the records.

source_options.py   the options of the source
source_schema.py    its columns
batch_source.py     reads topics as one batch
stream_source.py    reads topics batch after batch
offset_reader.py    looks up the partitions and offsets that a plan needs
offset_plan.py      divides offsets among tasks
range_reader.py     reads a range of offsets in a task
arrow_columns.py    records as Arrow record batches
progress.py         how far a stream is behind its topics
"""
