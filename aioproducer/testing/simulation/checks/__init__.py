"""The checks of a run: every record and transaction is noted, and compared with the logs at the end.

ledger.py                  every record, and its outcome
transactions.py            every transaction, and its end
invariants.py              the invariants of records
transaction_invariants.py  the invariants of transactions
open_batches.py            what holds of open batches during a run
unit_invariants.py         the invariants of units
violations.py              the broken promises
"""
