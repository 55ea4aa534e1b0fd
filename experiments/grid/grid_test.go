package grid

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

func env(pairs ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for _, p := range pairs {
			if k, v, _ := strings.Cut(p, "="); k == name {
				return v, true
			}
		}
		return "", false
	}
}

func TestParse(t *testing.T) {
	for _, c := range []struct {
		text string
		env  []string
		want Shard
		err  string
	}{
		{"0/1", nil, Shard{0, 1}, ""},
		{"3/20", nil, Shard{3, 20}, ""},
		{"auto", []string{"SLURM_ARRAY_TASK_ID=7", "SLURM_ARRAY_TASK_MIN=5", "SLURM_ARRAY_TASK_COUNT=4"}, Shard{2, 4},
			""},
		{"auto/8", []string{"SLURM_ARRAY_TASK_ID=7"}, Shard{7, 8}, ""},
		{"auto", []string{"JOB_COMPLETION_INDEX=3", "CLIFFTOP_SHARDS=4"}, Shard{3, 4}, ""},
		{"auto/6", []string{"JOB_COMPLETION_INDEX=0"}, Shard{0, 6}, ""},
		{"20/20", nil, Shard{}, "there is no shard 20 of 20"},
		{"-1/4", nil, Shard{}, "there is no shard -1 of 4"},
		{"0/0", nil, Shard{}, "0 shards are not allowed"},
		{"4", nil, Shard{}, `"4" is not a shard`},
		{"a/b", nil, Shard{}, `"a/b" is not a shard`},
		{"1/2/3", nil, Shard{}, "is not a shard"},
		{"auto", nil, Shard{}, "no scheduler sets the index"},
		{"auto", []string{"SLURM_ARRAY_TASK_ID=7"}, Shard{},
			"SLURM_ARRAY_TASK_ID is set but not SLURM_ARRAY_TASK_COUNT"},
		{"auto", []string{"SLURM_ARRAY_TASK_ID=9", "SLURM_ARRAY_TASK_MIN=1", "SLURM_ARRAY_TASK_COUNT=4"}, Shard{},
			"there is no shard 8 of 4"},
		{"auto/x", []string{"JOB_COMPLETION_INDEX=0"}, Shard{}, `"x" is not a number of shards`},
		{"auto", []string{"JOB_COMPLETION_INDEX=one"}, Shard{}, "JOB_COMPLETION_INDEX=one is not a number"},
	} {
		got, err := Parse(c.text, env(c.env...))
		switch {
		case c.err == "" && (err != nil || got != c.want):
			t.Errorf("%s %v: %v, %v, want %v", c.text, c.env, got, err, c.want)
		case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
			t.Errorf("%s %v: error %v, want %q", c.text, c.env, err, c.err)
		}
	}
}

// TestShardsDivide asserts that every run belongs to exactly one shard.
func TestShardsDivide(t *testing.T) {
	for _, n := range []int{1, 4, 20, 2001} {
		for i := range 2000 {
			var owners []int
			for k := range n {
				if (Shard{k, n}).Has(i) {
					owners = append(owners, k)
				}
			}
			if len(owners) != 1 {
				t.Fatalf("run %d of %d shards belongs to %v", i, n, owners)
			}
		}
	}
	if !(Shard{}).Has(17) || !(Shard{}).Whole() {
		t.Error("the zero shard is not the whole list")
	}
}

func TestKeyDependsOnEachPart(t *testing.T) {
	keys := []string{
		Key([]byte("ab"), []byte("c")), Key([]byte("a"), []byte("bc")), Key([]byte("abc")), Key([]byte("abc"), nil),
		Key(),
	}
	slices.Sort(keys)
	if n := len(slices.Compact(slices.Clone(keys))); n != len(keys) {
		t.Errorf("%d different keys of %d", n, len(keys))
	}
}

func TestStore(t *testing.T) {
	s, err := Open(filepath.Join(t.TempDir(), "a", "b"))
	if err != nil {
		t.Fatal(err)
	}
	if _, ok, err := s.Get("x"); ok || err != nil {
		t.Errorf("an empty store has x: %v, %v", ok, err)
	}
	for range 2 { // the second time the result exists
		if err := s.Put("x", []byte(`"one"`)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Put("x", []byte(`"two"`)); err == nil || !strings.Contains(err.Error(), "left as it is") {
		t.Errorf("a different result is accepted: %v", err)
	}
	if got, ok, err := s.Get("x"); string(got) != `"one"` || !ok || err != nil || !s.Has("x") {
		t.Errorf("x is %q, %v, %v", got, ok, err)
	}
	if files, err := os.ReadDir(s.Dir()); err != nil || len(files) != 1 {
		t.Errorf("files %v, %v, want one", files, err)
	}
	if err := os.WriteFile(filepath.Join(s.Dir(), ".y-123"), []byte("ha"), 0o666); err != nil {
		t.Fatal(err)
	}
	if s.Has("y") {
		t.Error("an incomplete file counts as a result")
	}
}

// Files that were cut off are no results. They are replaced.
func TestDamagedResults(t *testing.T) {
	s, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for i, damaged := range []string{"", `{"a": [1, 2`, "\x00\x00\x00"} {
		key := fmt.Sprint(i)
		if err := os.WriteFile(s.path(key), []byte(damaged), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, ok, err := s.Get(key); ok || err != nil || s.Has(key) {
			t.Errorf("%q is a result: %v, %v", damaged, ok, err)
		}
		if err := s.Put(key, []byte(`{"a": [1, 2]}`)); err != nil {
			t.Error(err)
		}
		if got, ok, err := s.Get(key); string(got) != `{"a": [1, 2]}` || !ok || err != nil {
			t.Errorf("%q, %v, %v", got, ok, err)
		}
	}
	if s.Replaced() != 3 {
		t.Errorf("%d files were replaced, want 3", s.Replaced())
	}
}

// TestConcurrentPut lets several tasks write the same results at once. All succeed, and each result is complete.
func TestConcurrentPut(t *testing.T) {
	s, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var tasks sync.WaitGroup
	for range 8 {
		tasks.Go(func() {
			for i := range 20 {
				if err := s.Put(fmt.Sprint(i), fmt.Appendf(nil, `"result %d"`, i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	tasks.Wait()
	for i := range 20 {
		if got, _, _ := s.Get(fmt.Sprint(i)); string(got) != fmt.Sprintf(`"result %d"`, i) {
			t.Errorf("result %d is %q", i, got)
		}
	}
}

func TestOpenError(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(file); err == nil || !strings.Contains(err.Error(), "cannot be written to: not a directory") &&
		!strings.Contains(err.Error(), "file exists") {
		t.Errorf("a file as a directory: %v", err)
	}
}
