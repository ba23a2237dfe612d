#!/bin/bash
# A Slurm of one node, this machine, in a folder: start FOLDER, stop FOLDER.  Needs root, slurm-wlm and munge (Debian).
set -euo pipefail
what=$1 at=$2
host=$(hostname -s)

start() {
  mkdir -p "$at"/{state,spool,log,munge}
  chmod 0755 "$at"
  head -c 128 /dev/urandom >"$at/munge/key"
  chown -R root: "$at/munge"
  chmod 0700 "$at/munge" && chmod 0400 "$at/munge/key"
  mkdir -p /run/munge && chmod 0755 /run/munge
  munged --force --key-file="$at/munge/key" --socket=/run/munge/munge.socket.2 \
    --pid-file="$at/munge/pid" --log-file="$at/munge/log" --seed-file="$at/munge/seed"
  cat >"$at/slurm.conf" <<CONF
ClusterName=one
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
SlurmctldPort=17817
SlurmdPort=17818
StateSaveLocation=$at/state
SlurmdSpoolDir=$at/spool
SlurmctldPidFile=$at/slurmctld.pid
SlurmdPidFile=$at/slurmd.pid
SlurmctldLogFile=$at/log/slurmctld
SlurmdLogFile=$at/log/slurmd
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
MpiDefault=none
JobRequeue=0
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=all Nodes=$host Default=YES MaxTime=INFINITE State=UP
CONF
  export SLURM_CONF=$at/slurm.conf
  slurmctld -f "$SLURM_CONF"
  slurmd -f "$SLURM_CONF"
  for _ in $(seq 50); do
    sinfo -h -o %T 2>/dev/null | grep -q '^idle' && return
    sleep 0.2
  done
  sinfo >&2
  tail -n 5 "$at"/log/* >&2
  return 1
}

stop() {
  local name
  for name in slurmd.pid slurmctld.pid munge/pid; do
    [ -f "$at/$name" ] && kill "$(cat "$at/$name")" 2>/dev/null || true
  done
}

"$what"
