"""The calls of the admin client, by subject.

topic_calls.py, config_calls.py, offset_calls.py, quota_calls.py, transaction_calls.py, acl_calls.py
                   the calls
groups.py, transactions.py
                   requests to the coordinators of groups and of transactions
answers.py         results and errors in a broker's answer
admin_requests.py  sends requests to the right brokers, and repeats the attempts that fail
"""
