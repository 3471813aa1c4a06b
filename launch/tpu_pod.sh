#!/bin/bash
gcloud compute tpus tpu-vm ssh pod --zone=us-central2-b --worker=all '--command=read_metadata() { curl -sf -H '"'"'Metadata-Flavor: Google'"'"' http://metadata.google.internal/computeMetadata/v1/instance/attributes/"$1"; }
export TPU_WORKER_ID=$(read_metadata agent-worker-number)
export TPU_WORKER_HOSTNAMES=$(read_metadata worker-network-endpoints | tr , '"'"'\n'"'"' | cut -d : -f 3 | paste -s -d ,)
exec nmt-jax train --config=configs/transformer.py:size=big --workdir=/shared/runs/big'
