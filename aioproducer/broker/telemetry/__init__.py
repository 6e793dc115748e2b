"""The metrics that clients push to the brokers (KIP-714).

client_metrics_manager.py    what each client is to push, and which of its requests are accepted
client_metrics_instance.py   one client, as a node knows it
received_telemetry.py        what clients have pushed, within bounds
"""
