"""The configs of brokers, topics, groups and listeners, and how they change.

broker_config.py, topic_config.py, stored_topic_config.py   names, types, defaults and ranges
cluster_configs.py     what nodes and topics are configured with
dynamic_configs.py, config_changes.py   what may change while a node runs, and single changes
resource_configs.py    the configs of groups and of client metrics
connection_overrides.py   how many connections single addresses may have
listeners.py, end_point.py, listener_users.py   the listeners that configs describe
"""
