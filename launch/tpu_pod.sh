#!/bin/bash
# Written by `nmt-jax launch --on=tpu`. Run it again to continue or to follow the run.
on_all_hosts() { gcloud compute tpus tpu-vm ssh pod --zone=us-central2-b --worker=all --command="$1"; }

install=$(cat << 'END'
set -e
cd ~/nmt-jax
if [ -e pid ] && grep -qs nmt-jax "/proc/$(cat pid)/cmdline"; then
    echo 'nmt-jax: a run goes on here; it keeps its code'
    exit
fi
rm -rf code exit_code && mkdir code && tar -xzf code.tar.gz -C code
if [ ! -e venv ]; then
    for python in python3.13 python3.12 python3.11 python3; do command -v $python > /dev/null && break; done
    $python -m venv venv
fi
venv/bin/pip install --quiet --disable-pip-version-check './code[tpu]'
END
)

start=$(cat << 'END'
cd ~/nmt-jax
[ -e pid ] && grep -qs nmt-jax "/proc/$(cat pid)/cmdline" && exit
read_metadata() { curl -sf -H 'Metadata-Flavor: Google' http://metadata.google.internal/computeMetadata/v1/instance/attributes/"$1"; }
export TPU_WORKER_ID=$(read_metadata agent-worker-number)
export TPU_WORKER_HOSTNAMES=$(read_metadata worker-network-endpoints | tr , '\n' | cut -d : -f 3 | paste -s -d ,)
export PATH=~/nmt-jax/venv/bin:$PATH
echo "$TPU_WORKER_ID" > worker
cd code
setsid bash -c 'trap : TERM INT USR1; "$@"; echo $? > ~/nmt-jax/exit_code' nmt-jax nmt-jax train --config=configs/transformer.py:size=big --workdir=/shared/runs/big > ../log 2>&1 < /dev/null &
echo $! > ../pid
END
)

follow=$(cat << 'END'
cd ~/nmt-jax
tail -n 20 -F log 2> /dev/null & tail=$!
trap 'kill $tail' EXIT
while [ ! -e exit_code ]; do
    grep -qs nmt-jax "/proc/$(cat pid)/cmdline" || [ -e exit_code ] || echo 137 > exit_code
    sleep 1
done
sleep 1
echo "nmt-jax: worker $(cat worker) ended with code $(cat exit_code)"
END
)

folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
tar -czf "$folder/code.tar.gz" -C . pyproject.toml README.md nmt_jax metrics_jax configs
on_all_hosts 'mkdir -p nmt-jax' &&
    gcloud compute tpus tpu-vm scp "$folder/code.tar.gz" pod:nmt-jax/code.tar.gz --zone=us-central2-b --worker=all &&
    on_all_hosts "$install" &&
    on_all_hosts "$start" || exit 1

stop='kill -TERM -$(cat nmt-jax/pid)'
echo "nmt-jax: Ctrl-C ends this command, but not the run; to save and stop it, run on its hosts: $stop" >&2
lost=0
until on_all_hosts "$follow" | tee "$folder/codes"; [ "${PIPESTATUS[0]}" -eq 0 ]; do
    lost=$((lost + 1))
    if [ "$lost" -gt 100 ]; then
        echo 'nmt-jax: error: pod does not answer; run this again to follow the run, if it goes on' >&2
        exit 1
    fi
    echo 'nmt-jax: the connection is lost, the run goes on; connecting again' >&2
    sleep "${RETRY_SECONDS:-10}"
done
codes=$(sed -n 's/^nmt-jax: worker .* ended with code //p' "$folder/codes" | sort -n)
exit "$(tail -n 1 <<< "${codes:-1}")"
