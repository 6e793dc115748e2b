"""The users of a run: they send records, work in transactions, and end their producers.

producers.py    the producers of a run
workload.py     users that send records
application.py  users that work in transactions
unit_work.py    users that work in units
serializer.py   a serializer that sometimes fails
interceptor.py  an interceptor that counts
endings.py      the ends of producers without transactions
"""
