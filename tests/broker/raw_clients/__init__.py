"""What tests say to a broker frame by frame, and the brokers that they say it to."""
