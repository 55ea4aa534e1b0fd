#!/bin/bash
# Runs sweep.sbatch on a real Slurm: a cluster of one node on the loopback interface, which this script
# starts and stops. An array of 20 tasks makes a sweep; some tasks are killed on the way; the array is submitted again; the
# result is joined, and must be that of one process, byte for byte.
#
#   experiments/scale-out/slurm/try.sh
#
# It takes about two minutes, installs Debian's packages where they are missing, and says so and does nothing
# where it may not.
set -euo pipefail
cd "$(dirname "$0")/../../.."
script=$PWD/experiments/scale-out/slurm/sweep.sbatch

skip() { echo "skipped: $1"; exit 0; }
fail() { echo "FAILED: $1" >&2; exit 1; }

if ! command -v slurmctld slurmd munged sbatch >/dev/null; then
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || skip "Slurm is not installed, and only root can install it (apt-get install munge slurmctld slurmd slurm-client)"
  { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends munge slurmctld slurmd slurm-client; } >/dev/null 2>&1 ||
    skip "Slurm's packages cannot be installed here"
fi
[ "$(id -u)" = 0 ] || skip "slurmd has to be started by root"

work=$(mktemp -d)
stop() {
  timeout 20 scancel --full --signal=KILL -u root 2>/dev/null
  timeout 20 scancel -u root 2>/dev/null
  for _ in 1 2 3 4 5; do [ -n "$(timeout 5 squeue -h 2>/dev/null)" ] && sleep 1; done
  for pid in slurmd.pid slurmctld.pid munge/pid; do
    [ -s "$work/$pid" ] && kill "$(cat "$work/$pid")" 2>/dev/null
  done
  sleep 1
  rm -rf "$work"
}
trap 'stop || true' EXIT

# The cluster.
mkdir -m 700 "$work/munge"
mkdir "$work/state" "$work/spool"
head -c 1024 /dev/urandom >"$work/munge/key"
chmod 400 "$work/munge/key"
munged --force --key-file="$work/munge/key" --socket="$work/munge/socket" --pid-file="$work/munge/pid" \
  --log-file="$work/munge/log" --seed-file="$work/munge/seed"
node=$(hostname -s)
cat >"$work/slurm.conf" <<CONF
ClusterName=loopback
SlurmctldHost=$node(127.0.0.1)
SlurmctldPort=16817
SlurmdPort=16818
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$work/munge/socket
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.pid
SlurmctldLogFile=$work/slurmctld.log
SlurmdLogFile=$work/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
ReturnToService=2
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SchedulerParameters=sched_interval=2,batch_sched_delay=0,bf_interval=2
NodeName=$node NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=all Nodes=$node Default=YES MaxTime=INFINITE State=UP
CONF
export SLURM_CONF=$work/slurm.conf
slurmctld -f "$SLURM_CONF"
slurmd -f "$SLURM_CONF"
for _ in $(seq 30); do sinfo -h -o %t 2>/dev/null | grep -q idle && break; sleep 1; done
sinfo -h -o %t | grep -q idle || { tail -n 20 "$work/slurmctld.log" "$work/slurmd.log" >&2; fail "the node did not come up"; }
echo "Slurm $(slurmctld -V | cut -d' ' -f2), one node, 2 CPUs"

# The sweep, by one process.
go build -o "$work/clifftop" ./cmd/clifftop
export CLIFFTOP=$work/clifftop
sweep=(--over rate=1..30:200 --set run.requests=5000)
"$CLIFFTOP" sweep "${sweep[@]}" --out "$work/one" --quiet >"$work/one.txt"

wait_for() { # until the array has left the queue
  for _ in $(seq 300); do queued=$(squeue -h -j "$1" 2>/dev/null) && [ -z "$queued" ] && return; sleep 1; done
  fail "array $1 is still in the queue"
}
submit() { sbatch --parsable --output="$work/%A_%a.log" "$script" "${sweep[@]}" --out "$work/many"; }

cd "$work"
job=$(submit)
for _ in $(seq 60); do [ "$(squeue -h -t R -j "$job" | wc -l)" -ge 2 ] && break; sleep 0.2; done
sleep 1
scancel "${job}_[17,19]"
running=$(squeue -h -t R -j "$job" -o %K)
for task in $running; do scancel --signal=KILL --full "${job}_$task" || true; done # it may have ended meanwhile
echo "killed running tasks $(echo $running) and two that were waiting"
wait_for "$job"

if "$CLIFFTOP" merge many >/dev/null 2>missing.txt; then fail "nothing is missing although tasks were killed"; fi
head -n 1 missing.txt
"$CLIFFTOP" merge many --partial --out partial --quiet >/dev/null

job=$(submit)
wait_for "$job"
grep -h 'found there' "$work/${job}"_*.log | head -n 3 || fail "the second array found nothing to go on from"
"$CLIFFTOP" merge many --quiet >many.txt
cmp one.txt many.txt
for file in curve.json curve.csv sweep.svg; do cmp "one/$file" "many/$file"; done
echo "20 tasks, some killed and resumed: the merged sweep is that of one process, byte for byte"
