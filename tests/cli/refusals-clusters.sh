#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
SESSION=rest SECTIONS='/checkpoint|net|size/'
. "$(dirname "$0")/refusals.sh"
