"""Configs declared as data.

config_def.py      a frozen dataclass whose fields are the table
client_config.py   the configs of every client
producer_config.py those of the producer
tls_values.py      what configs of TLS may be
unsupported.py     Kafka's configs that are refused, and why
properties.py      Java's .properties files
providers.py       values that stand elsewhere: files, environment variables
names.py           names of configs as errors show them
plugins.py, plugin_types.py   configs that name the user's code
"""
