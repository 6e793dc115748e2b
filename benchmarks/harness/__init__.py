"""What all benchmarks are measured with."""
