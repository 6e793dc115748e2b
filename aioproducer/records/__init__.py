"""Record batches: what Kafka stores and sends records in. Bytes only, no I/O.

record.py                a record in a log
record_batch.py          a batch, and how it is read
batch_layout.py          the layout of the 61 bytes before its records
record_batch_header.py   writes them
record_writer.py         writes the records of a batch
record_reader.py         reads them
record_columns.py        writes records from Arrow's columns
batch_columns.py         reads records into columns
record_writer_pure.py, batch_columns_pure.py
                         the same for the interpreter
column_buffers.py        columns in Arrow's layout
written_records.py       copies written records to other batches
committed_batches.py     the batches that read_committed sees
compression.py           gzip, snappy, lz4, zstd
crc32c.py                the checksum
"""
