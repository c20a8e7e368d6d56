#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints a document of iobench net with a slow link, as three ranks would write it."""
import json
import sys

figure = lambda key, unit, value: {f"{key}_{unit}": value, f"{key}_low_{unit}": value * .9, f"{key}_high_{unit}": value * 1.1}
json.dump({"schema": "iobench-net", "schema_version": 2, "transport": "Open MPI", "nodes": 3, "verified_bytes": 99,
           "ranks": [{"host": f"n{i}", "node": i} for i in range(3)], "settings": {"repeats": 7},
           "messages": {"from_rank": 0, "to_rank": 1, "sizes": [
               {"bytes": size, **figure("latency", "s", 1e-6 * size), **figure("forth", "bytes_per_s", 1e6 * size),
                **figure("back", "bytes_per_s", 1e6 * size), **figure("both", "bytes_per_s", 2e6 * size)} for size in (8, 64)]},
           "pairs": {"one_at_a_time": True, "bytes_per_s": [[None, 1e9, 9e8], [1e9, None, 1e8], [1e9, 9e8, None]],
                     "suspects": [{"kind": "link", "from_rank": 1, "to_rank": 2, "bytes_per_s": 1e8, "typical_bytes_per_s": 9e8}]},
           "collectives": [{"name": name, "bytes": size, **figure("time", "s", 1e-3), "algorithm_bytes_per_s": 1e3 * size,
                            "bus_bytes_per_s": 2e3 * size} for name in ("all_reduce", "broadcast") for size in (8, 64)]},
          sys.stdout)
