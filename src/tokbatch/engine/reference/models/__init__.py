"""From a pretoken to tokens: one module a model."""
