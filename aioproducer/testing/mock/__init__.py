"""Producers without brokers, for unit tests.

mock_producer.py       the mock, which users complete by hand or not
mock_sender.py         its Sender
mock_transactions.py   its transactions
mock_errors.py         the errors that its calls raise
sync_mock_producer.py  the mock for threads
"""
