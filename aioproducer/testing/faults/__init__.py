"""Scripted faults of the embedded cluster.

fault_script.py     scripts of faults
fault_rule.py       when a rule applies, and what it has hit
request_rule.py     the effects of rules
message_entries.py  the topics and partitions in a message
"""
