#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
SESSION=runs SECTIONS='!/run:|job files/'
. "$(dirname "$0")/refusals.sh"
