"""What a record costs, part by part."""
