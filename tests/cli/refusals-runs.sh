#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2034 # for refusals.sh
SESSION=runs SECTIONS='/run:|job files/'
. "$(dirname "$0")/refusals.sh"
