"""One record batch: the Arrow boundary, the round trip, the statistics, and the one transform."""
