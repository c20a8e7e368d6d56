#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# iobench plot: series of known shape, and their charts.
. "$(dirname "$0")/cli.sh"

# A square wave of 0 and 100 MB/s from storage, plus 10 MB/s both ways on the fabric.
awk 'BEGIN {
    print "time_s,phases,read_bytes_per_s,from_local_bytes_per_s,from_fabric_bytes_per_s," \
        "fabric_receive_bytes_per_s,fabric_send_bytes_per_s"
    for (i = 1; i <= 20; i++) {
        rate = int((i - 1) / 5) % 2 * 1e8
        phases = i <= 5 ? "drop 1" : i <= 10 ? "epoch 1" : i <= 15 ? "shuffle 2" : "epoch 2"
        printf "%g,%s,%g,0,%g,%g,1e7\n", i / 10, phases, rate, rate, rate + 1e7
    }
}' >series.csv

# A job of two nodes: each node and their sum, from either of its files; clock differences do not
# separate its nodes.
awk -F, 'NR == 1 { print $0 ",n1:read_bytes_per_s,n1:from_fabric_bytes_per_s,n2:read_bytes_per_s,n2:from_fabric_bytes_per_s" }
    NR > 1 { print $0 ",1e6,1e6,3e6,3e6" }' series.csv >job.csv
python3 - <<'END'
import json
def series(start, rate, **more):
    return {"start_unix_s": start, "interval_s": 0.1, "phases": [], **more,
            "columns": ["time_s", "from_fabric_bytes_per_s"], "rows": [[i / 10, rate] for i in range(1, 21)]}
nodes = [series(1e9 + 7 * i, (1 + 2 * i) * 1e6, host=f"n{i + 1}") for i in range(2)]
with open("job.json", "w") as file:
    json.dump({"schema": "iobench-result", "schema_version": 2,
               "jobs": [{"place": {"host": "n1"}, "series": series(1e9, 4e6, nodes=nodes)}]}, file)
END
# plotted ARGUMENT...: its picture is compared at the end
plotted() {
    expect 0 "$IOBENCH" plot -o job.svg "$@"
    { echo "\$ iobench plot $*" && cat job.svg && echo; } >>pages
}
plotted job.csv
plotted job.json

# PNG without rsvg-convert: an error that says what to install; SVG needs nothing.
mkdir none
expect 1 env PATH="$T/none" "$IOBENCH" plot -o x.png series.csv
says "rsvg-convert" "not installed" "apt-get install"
[ ! -e x.png ] || die "a picture without rsvg-convert"
expect 0 env PATH="$T/none" "$IOBENCH" plot -o - series.csv
says "received - sent" "</svg>"

# Two results of one host are two runs, not nodes: their labels, no sum.
python3 - <<'END'
import json
job = json.load(open("job.json"))["jobs"][0]
for label, rate in ("before", 10), ("after", 20):
    series = {"start_unix_s": 1e9 + rate, "interval_s": 0.1, "phases": [],
              "columns": ["time_s", "from_local_bytes_per_s", "cpu_user_percent", "cpu_io_wait_percent", "page_cache_bytes",
                          "gpu_utilization_percent", "gpu_power_watts"],
              "rows": [[i / 10, rate * 1e6, 30, rate, 5e9, 80, 700 + rate] for i in range(1, 21)]}
    with open(label + ".json", "w") as file:
        json.dump({"schema": "iobench-result", "schema_version": 2,
                   "jobs": [{**job, "label": label, "series": series}]}, file)
END
plotted before.json after.json
# A chart of figures not to be used says so, and whose, under any title.
python3 - <<'END'
import json
for name, marks in ("before", {"valid": False}), ("after", {"degraded": True, "degraded_reason": "from memory"}):
    document = json.load(open(name + ".json"))
    document["jobs"][0].update(marks)
    document["jobs"][0]["dataset"] = {"synthetic": True}
    json.dump(document, open(name + "-marked.json", "w"))
END
expect 0 "$IOBENCH" plot --title Mine -o - before-marked.json after-marked.json
says ">Mine; synthetic data; before: INVALID; after: DEGRADED<"
expect 0 "$IOBENCH" plot -o - before-marked.json
says ">synthetic data; INVALID<"
expect 1 "$IOBENCH" plot -o mixed.svg before.json series.csv
says "chart them apart"

expect 0 "$IOBENCH" plot --title "a'b <&> \`id\`" series.csv
cat series.csv.svg >>pages
# Two nodes: each of them, and their sum.
plotted series.csv series.csv
[ "${UPDATE:-0}" = 0 ] || cp pages "$SRCDIR/tests/cli/saved/plot.txt"
diff -u "$SRCDIR/tests/cli/saved/plot.txt" pages || die "the pictures differ from tests/cli/saved/plot.txt"

# The suffix selects the output format, and only an older picture of ours of that format is replaced.
! command -v rsvg-convert >/dev/null || for kind in png pdf; do
    expect 0 "$IOBENCH" plot -o x.$kind before.json
    expect 0 "$IOBENCH" plot -o x.$kind before.json
    head -c 500 x.$kind >foreign.$kind
    cp foreign.$kind kept
    expect 1 "$IOBENCH" plot -o foreign.$kind before.json
    cmp foreign.$kind kept || die "somebody else's picture was replaced"
    cp before.json other.$kind
    expect 1 "$IOBENCH" plot -o other.$kind after.json
    says "not replaced"
done
if command -v rsvg-convert >/dev/null; then
    [ "$(head -c 4 x.png | tail -c 3)" = PNG ] || die "x.png is not a PNG"
    [ "$(head -c 4 x.pdf)" = %PDF ] || die "x.pdf is not a PDF"
fi

# The output of monitor can be charted.
expect 0 "$IOBENCH" monitor --json=lines --interval=50ms --sample-interval=20ms --count=3 .
if grep -qE '"(storage_read|net_receive)_bytes_per_s":[0-9]' lines; then
    expect 0 "$IOBENCH" plot lines
    grep -q '</svg>' lines.svg || die "no picture of a profile"
fi
exit 0
