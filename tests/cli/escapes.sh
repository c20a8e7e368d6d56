#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Control characters in foreign names (files, classes, labels) reach neither a terminal nor the rows
# of a table, and JSON keeps them.
. "$(dirname "$0")/cli.sh"
command -v python3 >/dev/null || skip "python3 is not installed"
CACHECTL=${IOBENCH%/*}/cachectl/cachectl

# An escape sequence, an injected line, C1, DEL, a direction override, an invalid UTF-8 byte.
evil=$(printf 's\033[2J\nCache    cold: proven\302\233m\177\342\200\256\377t')
shown='s\x1b[2J\x0aCache    cold: proven\xc2\x9bm\x7f\xe2\x80\xae\xfft'
cat >check.py <<'END'
import re, sys
text = open(sys.argv[1], "rb").read()
bad = re.search(rb"[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\xaa-\xae]|\xe2\x81[\xa6-\xa9]", text)
if bad or re.search(rb"^Cache    cold: proven", text, re.M):
    sys.exit(f"{sys.argv[2:]}: {text!r}")
text.decode("utf-8")
END
# clean STATUS COMMAND...: both streams must be free of control characters.
clean() {
    wanted=$1
    shift
    "$@" >printed 2>&1 && status=0 || status=$?
    [ "$status" = "$wanted" ] || die "exit status $status, not $wanted: $* $(cat printed)"
    python3 check.py printed "$@" || die "not clean"
}
has() { # TEXT: must be printed, escaped
    tr -d '\n' <printed | tr -s ' ' | grep -qF -e "$1" || die "no '$1' in: $(cat printed)"
}

clean 0 "$IOBENCH" pack synthetic:count=12,mean=6000 "$evil" -f recordio
has "$(printf '%s' "$shown" | tr -s ' ')"
# shellcheck disable=SC2317 # clean calls it
run() { "$IOBENCH" run --data "$evil" --runs 1 --decode none --no-calibrate "$@"; }
clean 0 run --json=r.json --csv r.csv --series r.series --label "$evil"
clean 0 run --dry-run --label "$evil"
clean 0 "$IOBENCH" inspect "$evil"
has 's\x1b[2J\x0aCache'
clean 0 "$IOBENCH" verify "$evil" --json=v.json
clean 0 "$IOBENCH" inspect "$evil" --json=i.json
clean 0 "$CACHECTL" status "$evil"
clean 0 "$CACHECTL" status --files "$evil"
"$CACHECTL" status --json "$evil" >c.json || die "cachectl --json"
clean 0 run --json=-
python3 - "$shown" <<'END' || die "the JSON does not have the name"
import json, sys
r, v, i, c = (json.load(open(name)) for name in ("r.json", "v.json", "i.json", "c.json"))
# JSON escapes UTF-8 itself; other bytes are written as \xNN.
name = b's\x1b[2J\nCache    cold: proven\xc2\x9bm\x7f\xe2\x80\xae'.decode() + "\\xfft"
assert r["jobs"][0]["dataset"]["path"].endswith(name), r["jobs"][0]["dataset"]
assert r["jobs"][0]["label"] == name and r["jobs"][0]["settings"]["label"] == name
assert v["data"].endswith(name) and i["data"].endswith(name) and c[0]["path"].endswith(name)
printed = json.load(open("printed"))
assert printed["jobs"][0]["dataset"]["path"].endswith(name)
END
[ "$(wc -l <r.csv)" = 2 ] || die "a label broke a row: $(cat r.csv)"
for file in r.csv r.series r.json v.json c.json; do
    python3 check.py $file || die "not clean: $file"
done

# Reasons.
clean 2 "$IOBENCH" run --data "$evil/$evil"
clean 2 "$IOBENCH" "--$evil"
clean 2 "$IOBENCH" "$evil-no-command"
clean 1 "$IOBENCH" verify "$evil/none"
clean 1 "$IOBENCH" pack "$evil/none" target
clean 1 "$CACHECTL" status "$evil/none"
clean 2 "$CACHECTL" "$evil"
again r.json again.json
clean 0 "$IOBENCH" compare r.json again.json
clean 0 "$IOBENCH" size --gpus 8 r.json
clean 1 "$IOBENCH" monitor -- "$evil"
printf 'garbage' >"$evil/train.rec"
clean 1 "$IOBENCH" verify "$evil"
# Classes and files.
mkdir -p "set/$evil"
printf 'no image' >"set/$evil/$evil.jpg"
clean 1 "$IOBENCH" inspect set --format files
clean 1 "$IOBENCH" verify set --format files
# A job file's section.
printf '[a\033[2J]\ndata=set\nformat=files\nruns=1\nno-such\n' >job.ini
clean 2 "$IOBENCH" run job.ini
# The output of a command.
clean 0 "$IOBENCH" run --data set --format files --runs 1 --decode none --no-calibrate --dry-run
# Only the program's own colours, and only on a terminal.
if script -qec true /dev/null >/dev/null 2>&1 </dev/null; then
    "$IOBENCH" pack synthetic:count=12,mean=6000 fine -f recordio >/dev/null
    script -qec "'$IOBENCH' run --data fine --runs 1 --decode none --no-calibrate --label '$(printf 'l\033[1mx\033[5m')'" typed \
        >/dev/null </dev/null
    sed -i 1d typed # contains the command itself
    if grep -q 'iobench 0' typed; then
        ! grep -q "$(printf '\033\\[5m')" typed || die "a blinking label"
        grep -qF 'l\x1b[1mx\x1b[5m' typed || die "the label is gone: $(cat -v typed)"
    fi
fi
exit 0
