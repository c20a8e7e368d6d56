#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2034 # for refusals.sh
SESSION=rest SECTIONS='/checkpoint|net|size/'
. "$(dirname "$0")/refusals.sh"
