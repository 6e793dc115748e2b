"""The outbox: rows of PostgreSQL on their way to Kafka.

outbox.py   ``outbox``: rows per second of a backlog, and the delay of rows from commit to acknowledgement
relaying.py the process that relays, in each way
poller.py   a poller as services write it, with aiokafka: what the relay is compared with
writing.py  the process of the service, which commits rows at a steady rate
"""
