package grid

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// MaxShards is the largest number of shards.
const MaxShards = 1_000_000

// A Shard is one task's part of a list: every Count-th run, starting with Index. Neighbours take a similar time and so
// go to different tasks. The zero Shard has all runs.
type Shard struct{ Index, Count int }

// Has reports whether run i of the list belongs to the shard.
func (s Shard) Has(i int) bool { return s.Count == 0 || i%s.Count == s.Index }

// Whole reports whether the shard has the whole list.
func (s Shard) Whole() bool { return s.Count <= 1 }

func (s Shard) String() string { return fmt.Sprintf("%d/%d", s.Index, max(s.Count, 1)) }

// Parse parses I/N, which is shard I of N with I from 0; auto/N, which takes I from the environment; or auto, which
// takes both. It supports array jobs of Slurm and Indexed Jobs of Kubernetes. Kubernetes sets no variable for N, so
// auto takes N from CLIFFTOP_SHARDS. The function lookup is [os.LookupEnv].
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

// fromEnvironment takes the index of the shard from the variables of a scheduler, and the count if it is not given.
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
				return Shard{}, fmt.Errorf("%s is set but not %s (want both, or auto/N)", s.index, s.count)
			}
			found += ", " + s.count + "=" + count
		}
		n, err := strconv.Atoi(count)
		if err != nil {
			return Shard{}, fmt.Errorf("auto: %q is not a number of shards (%s)", count, found)
		}
		return newShard(i, n, found, "array indices must be consecutive")
	}
	return Shard{}, errors.New("auto: no scheduler sets the index of the shard " +
		"(want SLURM_ARRAY_TASK_ID or JOB_COMPLETION_INDEX in the environment, or I/N)")
}
