"""One record batch: the Arrow boundary, the round trip, the statistics, and the one transform.

Reading order: `views.py` and `arrow.py` (Arrow arrays as the engine's columns, and back), `stats.py` (what is
counted), `count.py` and `round_trip.py` (where the numbers come from), `affixes.py`, `options.py`, and `transform.py`,
which is the whole.
"""
