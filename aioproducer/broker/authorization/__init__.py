"""What a client may do.

authorizer.py   the interface, and Kafka's StandardAuthorizer
acl_store.py    the ACLs of the cluster
"""
