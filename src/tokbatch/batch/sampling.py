"""Which rows belong to a sample: decided by the row's number in its file, so that batches and workers do not matter."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc


def in_sample(rows: pa.Int64Array, rate: float, purpose: int) -> pa.BooleanArray:
    """Say for each row number whether it belongs to the sample of this rate (0.0 to 1.0).

    Rows are chosen as by chance. `purpose` is a number that keeps the samples of different checks apart.
    """
    threshold = round(rate * 2**64)
    if threshold >= 2**64:
        return pa.repeat(pa.scalar(True), len(rows))
    return pc.less(_scrambled(rows.cast(pa.uint64()), purpose), pa.scalar(threshold, pa.uint64()))


def _scrambled(numbers: pa.UInt64Array, purpose: int) -> pa.UInt64Array:
    """Scramble the bits of numbers, as the generator SplitMix64 does (Steele, Lea and Flood, 2014)."""

    def constant(value: int) -> pa.UInt64Scalar:
        return pa.scalar(value % 2**64, pa.uint64())

    z = pc.add(numbers, constant((purpose + 1) * 0x9E3779B97F4A7C15))
    z = pc.multiply(z, constant(0x9E3779B97F4A7C15))
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        z = pc.multiply(pc.bit_wise_xor(z, pc.shift_right(z, constant(shift))), constant(factor))
    return pc.bit_wise_xor(z, pc.shift_right(z, constant(31)))
