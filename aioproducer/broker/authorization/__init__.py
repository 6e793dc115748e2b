"""Authorization: the operations that a client may perform.

authorizer.py   the interface, and Kafka's StandardAuthorizer
acl_store.py    the ACLs of the cluster
"""
