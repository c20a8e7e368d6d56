#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
SESSION=files SECTIONS='1'
. "$(dirname "$0")/refusals.sh"
