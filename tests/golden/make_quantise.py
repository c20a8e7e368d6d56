#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compute with NumPy how many of 2,048 bins the smallest KL divergence over 128 levels keeps: the
figures in tests/unit/test_quantise.c. Counts use integer arithmetic only, the same everywhere."""
import numpy as np

LEVELS, BINS = 128, 2048


def kept(counts):
    used = np.nonzero(counts)[0][-1] + 1
    best, least = used, np.inf
    for bins in range(LEVELS, used + 1):
        p = counts[:bins].astype(float)
        p[-1] += counts[bins:].sum()
        edges = np.arange(LEVELS + 1) * bins // LEVELS
        q = np.zeros(bins)
        for first, end in zip(edges[:-1], edges[1:]):
            part = counts[first:end]
            if part.any():
                q[first:end] = np.where(part > 0, part.sum() / np.count_nonzero(part), 0)
        q /= counts[:bins].sum()
        p /= counts.sum()
        if np.any((p > 0) & (q == 0)):
            continue
        there = p > 0
        found = np.sum(p[there] * np.log(p[there] / q[there]))
        if found < least:
            best, least = bins, found
    return best, least


i = np.arange(BINS, dtype=np.int64)
shapes = {
    "even": np.full(BINS, 1000),
    "long tail": 1000000000 // (1000 + i * i),
    "steep": 1000000000000 // (100 + i) ** 4,
    "bell with a far tail": np.maximum(100000 - i * i, 0) + 5 * (i % 7 == 0),
    "outliers": np.where(i < 600, 600 - i, 0) + (i % 300 == 299),
    "few bins": np.where(i < 90, 5, 0),
    "gaps": np.where(i % 3 == 0, 3000000 // (50 + i), 0),
}
for name, counts in shapes.items():
    print(name, *kept(counts))
