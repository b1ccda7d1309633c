#!/bin/bash
#
# SPDX-License-Identifier: Apache-2.0
#
# record.sh - In place of each program that phases call: write down the call
#
# It answers as far as the caller looks at the answer. $ROOT is the directory
# of the test, and nothing outside of it is touched.

program=$(basename "$0")

# asked_before words...: was a command with these words called before
function asked_before {
    grep --quiet --extended-regexp "^openstack .*$1" "$ROOT/calls"
}

function answer_openstack {
    case " $* " in
        *" service show "*)
            asked_before "service create .*preemption" || return 1;;
        *" endpoint list "*)
            [[ "$*" =~ --interface\ ([a-z]+) ]]
            asked_before "endpoint create .* ${BASH_REMATCH[1]} " || return 0;;
        *" flavor show "*)
            asked_before "flavor create .*${*: -1}" || return 1;;
    esac
    echo "id-of-something"
}

case $program in
    sudo)
        while [[ "$1" == -* || "$1" == *=* ]]; do
            shift
        done
        for word in "$@"; do
            if [[ "$word" =~ ^/[a-z.@/-]+$ && "$word" != "$ROOT"/* ]]; then
                # Someone waits for what is piped into tee to be taken.
                [[ "$1" != tee ]] || cat > /dev/null
                exit 0
            fi
        done
        exec "$@";;
    openstack)
        answer_openstack "$@"
        code=$?;;
    systemctl)
        case $1 in
            enable) touch "$ROOT/units/$2";;
            disable) rm -f "$ROOT/units/$2";;
            is-enabled) [[ -e "$ROOT/units/$2" ]];;
        esac
        code=$?;;
    curl)
        echo 200;;
esac
echo "$program $*" >> "$ROOT/calls"
exit "${code:-0}"
