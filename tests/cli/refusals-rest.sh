#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
SESSION=rest SECTIONS='!/checkpoint|net|size|sweep|studies/'
. "$(dirname "$0")/refusals.sh"
