"""What the embedded broker does and costs."""
