"""Attacks on the embedded broker by one hostile client, and their effect on an honest one.

attacks.py             ``attacks``: each attack beside an honest client, and its figures
attack_list.py         all attacks, by name
fetch_attacks.py       attacks by Fetch requests
batch_attacks.py       by record batches
topic_attacks.py       by topics, metadata, configs and quotas
group_attacks.py       by groups, offsets and transactions
connection_attacks.py  by connections and bytes that are no requests
steps.py               steps that several attacks take
hostile_client.py      a client that sends and reads what it wants to
hostile_batches.py     batches that cost more to read than to send
attacker.py            the process of the hostile client
honest_client.py       the client whose latency is measured
attacked_broker.py     the process of the broker
"""
