# SPDX-License-Identifier: Apache-2.0
# A row per epoch, as CSV: jq -r -f docs/examples/result.jq RESULT.json
["job", "run", "epoch", "samples", "samples_per_s", "waiting_percent", "limit"],
(.jobs | to_entries[] | .key as $job | .value.runs[] | .run as $run | .epochs[] |
    [$job, $run, .epoch, .samples, .samples_per_s, 100 * .wait_s / .wall_s, .limit]) | @csv
