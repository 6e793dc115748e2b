"""The configs of brokers, topics, groups and listeners, and their changes.

The texts that a user or a client sets are parsed into a ``BrokerConfig`` or ``TopicConfig``, which check every value. A
change is applied to the texts that are set; the new config is validated, by the running nodes too, before anything
changes. Then the nodes and topics get their new effective configs.

broker_config.py       the configs of brokers: names, types, defaults, ranges
topic_config.py        the configs of topics that have an effect
stored_topic_config.py    the configs of topics without effect
cluster_configs.py     the effective configs of nodes and topics, and the sources of each value
dynamic_configs.py     the configs of brokers that may change while a node runs
config_changes.py      single changes to configs
config_resource_type.py   what has configs, and which of them may be secrets
resource_configs.py    the configs of groups, without effect, and of client metrics subscriptions
client_match.py        the clients that a subscription is for
linear_pattern.py      regular expressions of clients, matched in linear time
connection_overrides.py   parses the connection limits of single addresses
listeners.py           the listeners that configs describe
end_point.py           the name, host and port of a listener
listener_users.py      the users of PLAIN, by listener
"""
