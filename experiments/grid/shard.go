package grid

import (
	"fmt"
	"strconv"
	"strings"
)

// MaxShards is the largest number of tasks that a list is divided among.
const MaxShards = 1_000_000

// A Shard is a task's part of a list: every Count-th run from Index on, so that neighbours, which take about as
// long, go to different tasks. The zero Shard has all.
type Shard struct{ Index, Count int }

// Has reports whether run i of the list is the task's.
func (s Shard) Has(i int) bool { return s.Count == 0 || i%s.Count == s.Index }

// Whole reports whether the task has the whole list.
func (s Shard) Whole() bool { return s.Count <= 1 }

// String writes INDEX/COUNT.
func (s Shard) String() string { return fmt.Sprintf("%d/%d", s.Index, max(s.Count, 1)) }

// Parse reads I/N, shard I (from 0) of N; or auto/N, with I from a variable of the environment, or auto, with both. lookup is
// [os.LookupEnv]. It knows the array jobs of Slurm and the Indexed Jobs of Kubernetes; the latter do not
// tell how many there are, which CLIFFTOP_SHARDS says.
func Parse(text string, lookup func(string) (string, bool)) (Shard, error) {
	const want = "want I/N with I from 0 to N-1, auto/N or auto"
	index, count, divided := strings.Cut(text, "/")
	if index == "auto" {
		return fromEnvironment(count, divided, lookup)
	}
	i, err1 := strconv.Atoi(index)
	n, err2 := strconv.Atoi(count)
	if err1 != nil || err2 != nil {
		return Shard{}, fmt.Errorf("%q is not a shard (%s)", text, want)
	}
	return newShard(i, n, text, want)
}

func newShard(i, n int, found, want string) (Shard, error) {
	switch {
	case n < 1 || n > MaxShards:
		return Shard{}, fmt.Errorf("%s: %d shards are not allowed (want 1 to %d)", found, n, MaxShards)
	case i < 0 || i >= n:
		return Shard{}, fmt.Errorf("%s: there is no shard %d of %d (%s)", found, i, n, want)
	}
	return Shard{i, n}, nil
}

// fromEnvironment asks the scheduler which task this is, and of how many where that is not given.
func fromEnvironment(count string, given bool, lookup func(string) (string, bool)) (Shard, error) {
	for _, s := range []struct{ index, first, count string }{
		{"SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_COUNT"},
		{"JOB_COMPLETION_INDEX", "", "CLIFFTOP_SHARDS"},
	} {
		index, ok := lookup(s.index)
		if !ok {
			continue
		}
		found := s.index + "=" + index
		i, err := strconv.Atoi(index)
		if err != nil {
			return Shard{}, fmt.Errorf("%s is not a number", found)
		}
		if first, ok := lookup(s.first); ok && s.first != "" {
			low, err := strconv.Atoi(first)
			if err != nil {
				return Shard{}, fmt.Errorf("%s=%s is not a number", s.first, first)
			}
			i -= low
			found += ", " + s.first + "=" + first
		}
		if !given {
			if count, ok = lookup(s.count); !ok {
				return Shard{}, fmt.Errorf("%s is set but not %s (want it, or auto/N)", s.index, s.count)
			}
			found += ", " + s.count + "=" + count
		}
		n, err := strconv.Atoi(count)
		if err != nil {
			return Shard{}, fmt.Errorf("auto: %q is not a number of shards (%s)", count, found)
		}
		return newShard(i, n, found, "array indices have to follow each other")
	}
	return Shard{}, fmt.Errorf("auto: no scheduler tells which shard this is (want SLURM_ARRAY_TASK_ID or JOB_COMPLETION_INDEX in the environment, or I/N)")
}
