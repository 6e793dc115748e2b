"""asyncio's side of talking to brokers: connections, one task per broker, cluster metadata."""
