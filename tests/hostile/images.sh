#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the group of this name: tests/hostile/main.c.
exec tests/hostile/hostile images
