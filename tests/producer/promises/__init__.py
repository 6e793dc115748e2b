"""What the producer promises on every event loop, and in the failures that broke other clients."""
