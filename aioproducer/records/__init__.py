"""Record batches: what Kafka stores and sends records in. Bytes only, no I/O."""
