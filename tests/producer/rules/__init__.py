"""The producer's rules together: Hypothesis chooses what happens to them, a model judges each step."""
