"""Configs declared as data.

config_def.py      a frozen dataclass whose fields are the table
client_config.py   the configs of every client
producer_config.py those of the producer
properties.py      Java's .properties files
plugins.py, plugin_types.py   configs that name the user's code
"""
