"""How text becomes ids: the protocol of an engine, the reference engine, and what compares two of them."""
