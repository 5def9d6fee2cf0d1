#!/bin/sh
# Exit status 0 if the container $1 runs, paused or not, and 1 if it does not.
test "$(docker inspect --format '{{.State.Running}}' "$1")" = true
