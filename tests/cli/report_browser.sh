#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Pages of iobench report in headless Chromium: no error, no network request, no horizontal
# scrolling at 400 and 1,600 pixels, in light and dark; hostile text does not execute.
. "$(dirname "$0")/cli.sh"

command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null ||
    skip "Chromium is not installed"

expect 0 "$IOBENCH" pack synthetic:count=300,classes=3,mean=6k,seed=5 set -f recordio
for shuffle in epoch none; do
    "$IOBENCH" run --data set --no-calibrate --batch-size 16 --sample-interval 10ms --runs 2 --epochs 2 \
        --shuffle $shuffle --label $shuffle --json=$shuffle.json >log 2>&1 || [ $? -eq 1 ] || die "$(cat log)"
done
expect 0 "$IOBENCH" infer --data set --network lenet --backend reference --size 32 --batch-size 4,8 --limit-samples 16 \
    --json infer.json
expect 0 "$IOBENCH" checkpoint saved --model own,params=1m --ranks 2 --chunk 1M --writes 2 --reads 1 --drop-caches=no \
    --json checkpoint.json
python3 "$SRCDIR/tests/cli/net_document.py" >net.json
python3 - <<'END'
import json
evil = "</script><img src=x onerror=\"document.title='no'\"><svg onload=alert(1)>" + "wide" * 100
def poison(value, key=""):
    if isinstance(value, dict): return {**{name: poison(part, name) for name, part in value.items()}, evil: evil, "__proto__": {"x": evil}}
    if isinstance(value, list): return [poison(part, key) for part in value]
    return evil if isinstance(value, str) and key not in ("schema", "phase", "columns") else value
document = json.load(open("epoch.json"))
document["jobs"] = [poison(job) for job in document["jobs"]]
document.pop("checksum", None)
json.dump(document, open("evil.json", "w"))
for name in ("infer", "checkpoint", "net"):
    document = poison(json.load(open(name + ".json")))
    document.pop("checksum", None)
    json.dump(document, open("evil-" + name + ".json", "w"))
rows = [dict(shuffle=name, labels_per_batch=random, labels_per_batch_at_random=10, bytes_per_s=speed, on_front=True,
             runs=1, cold_runs=1) for name, random, speed in (("epoch", 10, 1e8), ("none", 1, 9e8))]
json.dump(rows, open("shuffles.json", "w"))
END
expect 0 "$IOBENCH" report -o one.html epoch.json
expect 0 "$IOBENCH" report -o many.html epoch.json none.json shuffles.json
expect 0 "$IOBENCH" report -o evil.html evil.json epoch.json
expect 0 "$IOBENCH" report -o others.html infer.json checkpoint.json net.json
expect 0 "$IOBENCH" report -o evil-others.html evil-infer.json evil-checkpoint.json evil-net.json epoch.json
expect 0 timeout 300 python3 "$SRCDIR/tests/cli/browser.py" check one.html many.html evil.html others.html evil-others.html
# Marks of their tables are those of the page.
expect 0 "$IOBENCH" checkpoint scaled --model own,params=1m --ranks 2 --chunk 1M --writes 1 --reads 1 --drop-caches=no \
    --no-verify --scale 1/4 --json scaled.json
python3 - <<'END'
import json
net = json.load(open("net.json"))
gradients = {"network": "lenet", "alone_step_s": 1, "beside_step_s": 2, "slow_down": 2, "slow_down_low95": 1, "slow_down_high95": 3}
net.update(degraded=True, degraded_reason="the reads: from memory", beside={
    "rounds": 1, "gradients": gradients, "reads": {**gradients, "options": "run", "cache_before": "warm"}, "stages": [],
    "storage": "not over these ports", "doubt": "one step only"})
json.dump(net, open("beside.json", "w"))
END
expect 0 "$IOBENCH" report -o marks.html infer.json scaled.json beside.json
expect 0 timeout 300 python3 "$SRCDIR/tests/cli/browser.py" words marks.html
says "synthetic data" "SCALED to 1/" "restores NOT verified" "DEGRADED: the reads: from memory" "Reads: cache warm" \
    "Storage: not over these ports" "Doubt: one step only"
exit 0
