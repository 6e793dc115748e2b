"""One request and its answer, and what the answer means for each batch.

    drain → sealer: the final bytes → produce_request → produce_exchange
          → completion: the decision → batch_completer: complete, retry, split or fail

    sealer.py            gives batches their final bytes
    produce_request.py   batches as the bytes of a request
    produce_exchange.py  sends it, and reads the answer
    completion.py        the error table
    batch_completer.py   the end of batches

No module here imports asyncio.
"""
