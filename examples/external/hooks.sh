#!/bin/sh
# Hooks for the nodes of a cluster that `faultline cluster up` has started as processes.
#
#   hooks.sh VERB NODE
#
# Each node has a folder with the id of its process (pid) and a command that starts it again
# (start.sh). The folder of the cluster is that of `faultline cluster status`.
cluster=${CLUSTER_FOLDER:-${XDG_STATE_HOME:-$HOME/.local/state}/faultline/cluster}
node=$cluster/nodes/$2

signal() { # SIGNAL: send it to the node's process
    kill "-$1" "$(cat "$node/pid")"
}

ended() { # Wait until the node's process has ended; a zombie has.
    for _ in $(seq 200); do
        case $(ps -o stat= -p "$(cat "$node/pid")") in
        '' | Z*) return 0 ;;
        esac
        sleep 0.1
    done
    echo "$2 did not end"
    return 1
}

case $1 in
kill) signal KILL && ended ;;
stop) signal TERM && ended ;;
start) "$node/start.sh" ;;
pause) signal STOP ;;
resume) signal CONT ;;
status)
    case $(ps -o stat= -p "$(cat "$node/pid")") in
    '' | Z*) exit 1 ;;
    esac
    ;;
*)
    echo "unknown verb: $1"
    exit 64
    ;;
esac
