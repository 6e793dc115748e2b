"""aioproducer beside other producers."""
