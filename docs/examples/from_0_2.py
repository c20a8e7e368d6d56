#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rewrite a document of iobench 0.2 (schema 1) for 0.3 (schema 2): from_0_2.py OLD.json >NEW.json"""
import json
import sys

KEYS = {"sitting": "session", "loaders": "io_threads", "floor_samples_per_s": "ceiling_samples_per_s",
        "floor_samples_per_s_reason": "ceiling_samples_per_s_reason", "a_sittings": "a_sessions", "b_sittings": "b_sessions"}
SETTINGS = {"threads": "decode_threads", "silence_s": "rank_timeout_s", "silence": "rank-timeout"}


def renamed(value, keys):
    if isinstance(value, list):
        return [renamed(item, keys) for item in value]
    if not isinstance(value, dict):
        return value
    new = {}
    for key, item in value.items():
        new[keys.get(key, key)] = renamed(item, {**KEYS, **SETTINGS} if key == "settings" else keys)
    if "runs" in new and "settings" in new:  # a job
        for number, run in enumerate(new["runs"], 1):
            run["run"] = number
    if "columns" in new:  # a series, of all or of a node
        for phase in new.get("phases", []):
            phase["run"] += 1
            phase["epoch"] += 1
    if new.get("basis") == "sittings":
        new["basis"] = "sessions"
    return new


document = json.load(open(sys.argv[1]))
if document.get("schema_version") != 1:
    sys.exit(f"{sys.argv[1]}: not a document of schema 1")
document = renamed(document, KEYS)
document["schema_version"] = 2
document.pop("checksum", None)  # it sealed the old text
json.dump(document, sys.stdout, indent=1)
print()
