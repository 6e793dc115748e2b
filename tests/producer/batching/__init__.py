"""The whole producer fills batches: how long they linger, how large they grow, which partitions they go to."""
