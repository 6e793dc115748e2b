"""Many records in one call: ``send_many``, ``send_table`` and ``send_tables``.

columns or a table → rows, read a little ahead → append, while rows are plain
                   → tally: which records are in which batches → result

bulk_send.py         one call under way
columns.py, rows.py  the arguments of send_many, and how they reach the accumulator
table_columns.py, table_rows.py, table_stream.py   the same for tables of Arrow, and for a stream of them
append.py            the loop over plain rows
tally.py             the records of a call by batch
result.py            their outcomes
"""
