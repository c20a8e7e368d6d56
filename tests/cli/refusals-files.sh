#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2034 # for refusals.sh
SESSION=files SECTIONS='1'
. "$(dirname "$0")/refusals.sh"
