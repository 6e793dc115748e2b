"""One file per API, each headed by its versions and where it is simpler than Kafka, and what they share:

context.py           the parts of a node that they use
access.py            the permissions of a request's client
checks.py            checks of groups and transactional ids
leader_epoch.py      checks of a client's leader epoch
fetch_sessions.py    fetch sessions (KIP-227)
config_resource.py   resources that have configs
acl_messages.py      filters of ACLs
linear_pattern.py    regular expressions of clients, in linear time
"""
