"""Many records in one call: ``send_many``, ``send_table`` and ``send_tables``.

columns or a table → rows, read ahead by a little → append, as long as nothing is special
                   → tally: which records are in which batches → result

bulk_send.py         one call under way
columns.py, rows.py  the arguments of send_many, and their way into the accumulator
table_columns.py, table_rows.py, table_stream.py   the same for tables of Arrow, and for a stream of them
append.py            the loop over plain rows
tally.py             the records of a call by batch
result.py            what became of them
"""
