"""tokbatch."""
