"""The producer's rules without sockets and tasks, and models of the brokers that judge them."""
