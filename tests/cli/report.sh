#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# iobench report: one page with the answer, and no foreign text as markup.
. "$(dirname "$0")/cli.sh"

expect 0 "$IOBENCH" pack synthetic:count=300,classes=3,mean=6k,seed=5 set -f recordio
mkdir none
result() { # FILE OPTION...: a machine without a free processor may degrade a run
    file=$1
    shift
    "$IOBENCH" run --data set --no-calibrate --batch-size 16 --sample-interval 10ms --json="$file" "$@" >log 2>&1 ||
        [ $? -eq 1 ] || die "$*: $(cat log)"
}
result one.json --label before --runs 2 --epochs 2
result two.json --label after --runs 2 --shuffle none
result nameless.json --runs 1 --decode none

# The page of a result states what its table states, also without scripts.
expect 0 "$IOBENCH" report one.json
[ -s one.json.html ] || die "no page"
cat >check.py <<'END'
import base64, html.parser, json, math, re, sys
text = open(sys.argv[1], encoding="utf-8").read()
assert text.startswith("<!DOCTYPE html>\n<!-- iobench report"), text[:80]
assert len(text) < 5e6, len(text)
class Page(html.parser.HTMLParser):
    void = {"meta", "img", "link", "br", "input"}
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.scripts, self.words, self.tags, self.alts, self.sources = [], [], "", [], [], []
    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.tags.append(tag)
        if tag not in self.void: self.open.append(tag)
        for name, value in attributes.items():
            assert not name.startswith("on"), (tag, name)
            if name in ("src", "href"): assert value.startswith(("data:image/svg+xml;base64,", "#")), value[:60]
        if tag == "img":
            assert attributes["alt"], "a picture without words"
            self.sources.append(attributes["src"])
            self.alts.append(attributes["alt"])
        if tag == "script": self.scripts.append((attributes, ""))
    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, (tag, self.open)
        self.open.pop()
    def handle_data(self, data):
        if self.open and self.open[-1] == "script": self.scripts[-1] = (self.scripts[-1][0], self.scripts[-1][1] + data)
        elif not self.open or self.open[-1] != "style": self.words += data
page = Page()
page.feed(text)
page.close()
assert not page.open, page.open
assert len(page.scripts) == 3, len(page.scripts)
nonces = set(script[0]["nonce"] for script in page.scripts)
assert len(nonces) == 1 and len(min(nonces)) == 32, nonces
data = json.loads(page.scripts[0][1])
END
cat >one.py <<'END'
exec(open("check.py").read())
job = json.load(open("one.json"))["jobs"][0]
assert [result["name"] for result in data["results"]] == ["before"]
assert job["headline"] and job["entries"], "no words in the result"
shown = " ".join(page.words.split())
for entry in job["entries"]:
    assert " ".join(entry["text"].split()) in shown, entry
for name in "Data", "Limit", "Cache", "Reads":
    assert name in [entry["name"] for entry in job["entries"]], name
assert "series" not in data["results"][0]["job"]
latency = data["results"][0]["job"]["summary"]["read_latency"]
assert latency["first_epoch"]["p50_s"] > 0 and "quantiles" not in latency["later_epochs"], latency
drawn = [base64.b64decode(source[26:]).decode() for source in page.sources]
assert any("before, first epoch" in svg and "before, later epochs" in svg for svg in drawn), "curves"
assert data["charts"][0]["panels"][0]["curves"], "no curves"
END
python3 one.py one.json.html || die "the page of one result"

# A result given twice would count twice.
cp two.json copy.json
expect 1 "$IOBENCH" report -o twice.html one.json two.json copy.json
says "copy.json: the same result as an earlier file"
[ ! -e twice.html ] || die "a page of a result that counts twice"

# Several results are shown by their labels, or by file name without one, compared with the first.
again two.json again.json
expect 0 "$IOBENCH" report -o many.html --title 'A & B' one.json two.json nameless.json again.json
cat >many.py <<'END'
exec(open("check.py").read())
assert [result["name"] for result in data["results"]] == ["before", "after", "nameless.json", "again"]
assert [(one["a"], one["b"]) for one in data["comparisons"]] == [("before", "after"), ("before", "nameless.json"), ("before", "again")]
assert "samples_per_s" in data["comparisons"][0]["comparison"]["figures"] and data["comparisons"][0]["basis"]
assert data["comparisons"][0]["comparison"]["figures"]["samples_per_s"]["verdict"]
assert [curve["name"] for curve in data["charts"][0]["panels"][0]["curves"]][:2] == ["before", "after"]
assert "A & B" in page.words and "all nodes" not in text
END
python3 many.py many.html || die "the page of several results"

# Many runs of many epochs fit in a page: neither their phases nor their points grow without limit.
python3 - <<'END'
import json
document = json.load(open("one.json"))
document.pop("checksum", None)
job = document["jobs"][0]
names = ["read_bytes_per_s", "from_local_bytes_per_s", "cpu_user_percent", "cpu_system_percent", "cpu_io_wait_percent"]
for run in range(18):
    job["label"] = f"long {run}"
    job["series"] = {"start_unix_s": 1e9, "interval_s": 1, "columns": ["time_s", *names],
                     "rows": [[i, i % 7 * 1e8, i % 5 * 1e8, i % 11, i % 13, i % 17] for i in range(1, 1001)],
                     "phases": [{"phase": name, "run": 1, "epoch": i + 1, "from_s": 2 * i + at, "to_s": 2 * i + at + 1}
                                for i in range(500) for at, name in ((0, "shuffle"), (1, "epoch"))]}
    json.dump(document, open(f"long{run}.json", "w"))
END
expect 0 env PATH="$T/none" "$IOBENCH" report -o long.html long*.json
cat >long.py <<'END'
exec(open("check.py").read().replace("5e6", "2e6"))
assert len(data["charts"]) == 17 and all(10 < len(chart["phases"]) <= 300 for chart in data["charts"][1:])
END
python3 long.py long.html || die "many runs of many epochs"

# Inferences and checkpoints: each has its picture and its figures.
expect 0 "$IOBENCH" infer --data set --network lenet --backend reference --size 32 --batch-size 4,8 --limit-samples 16 \
    --json infer.json
expect 0 "$IOBENCH" checkpoint saved --model own,params=1m --ranks 2 --chunk 1M --writes 2 --reads 1 --drop-caches=no \
    --json checkpoint.json
python3 "$SRCDIR/tests/cli/net_document.py" >net.json
expect 0 "$IOBENCH" report -o others.html infer.json checkpoint.json net.json one.json
cat >others.py <<'END'
exec(open("check.py").read())
def same(shown, whole):
    "The page keeps nine digits of a number; rounding both again would differ where the ninth decides a tie."
    if isinstance(whole, dict): return shown.keys() == whole.keys() and all(same(shown[key], whole[key]) for key in whole)
    if isinstance(whole, list): return len(shown) == len(whole) and all(map(same, shown, whole))
    return shown == whole or isinstance(whole, float) and math.isclose(shown, whole, rel_tol=1e-8)
infer, saved, net = [other["document"] for other in data["others"]]
for name, shown in ("infer", infer), ("checkpoint", saved), ("net", net):
    whole = json.load(open(name + ".json"))
    assert same(shown, {key: whole[key] for key in shown}), shown
assert [row["batch_size"] for row in infer["batch_sizes"]] == [4, 8] and infer["place"]["host"] and infer["command"]
assert len(saved["writes"]) == 2 and len(saved["reads"]) == 1, saved
assert "Inference over batch size: infer.json" in page.words and "Rate of each checkpoint: checkpoint.json" in page.words
assert "Messages, pairs and collectives: net.json" in page.words and net["pairs"]["suspects"][0]["to_rank"] == 2
END
python3 others.py others.html || die "the page of an inference, of checkpoints and of a fabric"

# Everything in a result is untrusted.
python3 - <<'END'
import json
evil = "</script><img src=x onerror=\"alert('1')\"><svg onload=alert(1)>]]>&lt;\u2028`${1}"
def poison(value, key=""):
    if isinstance(value, dict): return {**{name: poison(part, name) for name, part in value.items()}, evil: evil, "__proto__": {"x": evil}}
    if isinstance(value, list): return [poison(part, key) for part in value]
    return evil if isinstance(value, str) and key not in ("schema", "phase", "columns") else value
document = json.load(open("one.json"))
document["jobs"] = [poison(job) for job in document["jobs"]]
document.pop("checksum", None)
json.dump(document, open("evil.json", "w"))
for name in "infer", "checkpoint", "net":
    document = poison(json.load(open(name + ".json")))
    document.pop("checksum", None)
    json.dump(document, open(f"evil-{name}.json", "w"))
json.dump([{"shuffle": evil, "labels_per_batch": 1, "labels_per_batch_at_random": 2, "bytes_per_s": 1e6, "runs": 1, "cold_runs": 1}],
          open("evil-shuffle.json", "w"))
END
expect 0 "$IOBENCH" report -o evil.html --title '</title><script>alert(1)</script>' evil.json evil-shuffle.json two.json evil-infer.json \
    evil-checkpoint.json evil-net.json
cat >evil.py <<'END'
exec(open("check.py").read())
assert "svg" not in page.tags and page.tags.count("script") == 3 and "onerror" in page.words
assert data["results"][0]["name"].startswith("</script><img src=x onerror")
END
python3 evil.py evil.html || die "text of a result became markup"

# Files that are not results are refused, and only an older page is replaced.
echo '{"jobs": [' >broken.json
echo '[1, 2]' >array.json
sed 's/"samples": [0-9]*/"samples": 1/' one.json >changed.json
sed 's/"samples": [0-9]*/"samples": 1/' infer.json >changed-infer.json
sed 's/"schema_version": 2/"schema_version": 3/' infer.json >later-infer.json
for file in broken.json array.json changed.json changed-infer.json later-infer.json; do
    expect 1 "$IOBENCH" report -o no.html $file
    says $file
    [ ! -e no.html ] || die "a page of $file"
done
expect 0 "$IOBENCH" report -o many.html one.json
echo '<!DOCTYPE html><p>mine' >mine.html
expect 1 "$IOBENCH" report -o mine.html one.json
says "mine.html" "not replaced"

# Other programs are not needed.
expect 0 env PATH="$T/none" "$IOBENCH" report -o bare.html one.json
python3 one.py bare.html || die "the page without other programs"
exit 0
