# Definitions for the expressions of every study. Requires only jq 1.6.

# ---- results ----
def job: .jobs[0];
def summary: job.summary;
def epoch($n): job.runs[0].epochs[$n - 1];

# Points [seconds, value * $scale] of a column of the series, from the first epoch on, at most 200.
def over_time($column; $scale):
  job.series as $s
  | if $s == null then [] else
      ($s.columns | index($column)) as $c
      | ([$s.phases[] | select(.phase == "epoch") | .from_s] | min // 0) as $t
      | [$s.rows[] | select(.[0] >= $t)] as $rows
      | if $c == null then [] else
          (($rows | length) / 200 | ceil) as $step
          | [range(0; $rows | length; [$step, 1] | max) as $i
             | [$rows[$i:$i + $step][] | .[$c] | numbers] as $values
             | select($values | length > 0)
             | [$rows[$i][0] - $t, ($values | add / length) * $scale]]
        end
    end;

def megabytes: if . == null then null else . / 1e6 end;
def mebibytes: if . == null then null else . / 1048576 end;

# Bytes from storage: from local disks, or over a fabric.
def storage_over_time:
  over_time("from_local_bytes_per_s"; 1e-6) as $local
  | over_time("from_fabric_bytes_per_s"; 1e-6) as $fabric
  | if ($fabric | map(.[1]) | add // 0) > ($local | map(.[1]) | add // 0) then $fabric else $local end;

# Replace values of points by means of $n neighbours.
def smooth($n):
  map(.[1]) as $v | [range(0; ($v | length) - $n + 1) as $i | $v[$i:$i + $n] | add / $n];

# ---- figures of several runs ----
def row($run): first(.[] | select(.run == $run)) // error("no run " + $run);
def column($name): [.[] | .[$name] | numbers];
def several($name): map(select(.[$name] != null)) | if length < 2 then error("one run is not enough") else . end;
def best($name): several($name) | max_by(.[$name]);
def worst($name): several($name) | min_by(.[$name]);
def mean: if length == 0 then null else add / length end;
def deviation: mean as $m | (map((. - $m) * (. - $m)) | mean | sqrt);

# Add speed-up and efficiency, against the row of the same group where $across is 1.
def speed_up($across; $rate; group):
  . as $all | map(. as $r
    | (first($all[] | select(.[$across] == 1 and group == ($r | group)) | .[$rate]) // null) as $one
    | . + {"speed-up": (if $one then .[$rate] / $one else null end),
           "efficiency, %": (if $one then 100 * .[$rate] / $one / .[$across] else null end)});

# ---- words ----
def thousands:
  if . < 0 then "-" + (-. | thousands)
  else tostring | [while(length > 0; .[:-3]) | .[-3:]] | reverse | join(",") end;
def show:
  if . == null then error("a figure is missing")
  elif type == "string" then .
  elif fabs >= 99.95 then round | thousands
  elif fabs >= 9.995 then . * 10 | round / 10 | tostring
  else . * 100 | round / 100 | tostring end;
def percent: (. * 100 | show) + "%";
def times: show + " times";
# "41% more than", "12% less than", "as much as": within 5% is the same.
def against($other; $more; $same; $less):
  if $other == null or . == null or $other == 0 then error("a figure is missing")
  elif . > 1.05 * $other then ((. / $other - 1) | percent) + " " + $more
  elif . < 0.95 * $other then ((1 - . / $other) | percent) + " " + $less
  else $same end;
def list: if length < 2 then join("") else (.[:-1] | join(", ")) + " and " + .[-1] end;

# A sentence, or why it is missing.
def said(sentence): try sentence catch ("Not shown here: " + (. | tostring) + ".");

# ---- pictures ----
def words($text): $text | split(";") | map(gsub("^ +| +$"; "")) | map(select(length > 0));
def without($names): map(reduce words($names)[] as $name (.; del(.[$name])));
def points_of($rows; $in; over_time):
  . as $p
  | if $p.kind == "bars" then
      [words($p.bars)[] as $c | {name: $c, points: [$rows[] | select(.[$c] != null) | [.run, .[$c]]]}]
    elif $p.kind == "lines" then
      [words($p.up)[] as $u
       | ($rows | group_by(if $p.by == "" then 0 else .[$p.by] end))[]
       | {name: ([if $p.by == "" then empty else (.[0][$p.by] | tostring) end,
                  if $p.by == "" or (words($p.up) | length > 1) then $u else empty end] | join(", ")),
          points: [.[] | select(.[$u] != null and .[$p.across] != null) | [.[$p.across], .[$u]]]}]
    elif $p.kind == "time" then
      [$in.runs[] | {name: .name, points: (.result | over_time)}]
    else [] end
  | map(select(.points | length > 0));
def picture($rows; $in; over_time): . + {lines: points_of($rows; $in; over_time)};

# ---- the machine ----
def machine:
  first(.runs[].result | job.place? | select(. != null)) // null
  | if . == null then null else
      "\(.cpu_count) x \(.cpu), \(.memory_bytes / 1073741824 | show) GiB of memory, \(.kernel)"
      + (if .file_system then ", " + .file_system else "" end)
    end;
