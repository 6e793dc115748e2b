"""What the writes of a query need: epochs, checkpoints, a cluster with faults."""
