#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
SESSION=rest SECTIONS='/sweep|studies/'
. "$(dirname "$0")/refusals.sh"
