"""Ways in: the command line and the adapters for other libraries. Thin, and third parties are imported inside."""
