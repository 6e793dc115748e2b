"""The cost of a record and of a pass of the Sender: counted, not timed."""
