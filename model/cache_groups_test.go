package model_test

import (
	"encoding/csv"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"clifftop/internal/testenv"
	"clifftop/model"
)

var groupForm = regexp.MustCompile(`^([a-z]+?)(\d*)x(\d+)b(\d+)$`)

var groupKinds = map[string]model.KVKind{"full": model.FullAttention, "sliding": model.SlidingWindow,
	"chunked": model.ChunkedLocalAttention, "mamba": model.RecurrentState}

// parseGroups reads groups such as sliding128x12b16: kind, window, layers, block size.
func parseGroups(t *testing.T, list string) (groups []model.CacheGroup) {
	t.Helper()
	for _, word := range strings.Split(list, "+") {
		m := groupForm.FindStringSubmatch(word)
		if m == nil {
			t.Fatalf("group %q", word)
		}
		g := model.CacheGroup{Kind: groupKinds[m[1]]}
		for i, to := range []*int{&g.Window, &g.Layers, &g.BlockSize} {
			*to, _ = strconv.Atoi(m[2+i])
		}
		groups = append(groups, g)
	}
	return groups
}

// TestCacheGroups compares groups, blocks of a given memory, blocks of a sequence, concurrency and the longest sequence
// with those of vLLM, for all configurations of the reference data.
func TestCacheGroups(t *testing.T) {
	f, err := os.Open(testenv.Reference(t, "schedules", "kvconfigs.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil || len(rows) != 35 {
		t.Fatalf("%d rows: %v", len(rows), err)
	}
	column := map[string]int{}
	for i, name := range rows[0] {
		column[name] = i
	}
	for _, row := range rows[1:] {
		field := func(name string) string { return row[column[name]] }
		number := func(name string) int {
			n, err := strconv.Atoi(field(name))
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		want, size, page := parseGroups(t, field("group_list")), number("block_size"), number("layer_page_bytes")
		var kinds model.KVGroups // the layers before they are grouped
		for _, g := range want {
			if n := len(kinds); n == 0 || kinds[n-1].Kind != g.Kind || kinds[n-1].Window != g.Window {
				kind := model.KVGroup{Kind: g.Kind, Window: g.Window}
				if g.Kind == model.RecurrentState {
					kind.StateBytes = int64(page)
				} else {
					kind.TokenBytes = int64(page / g.BlockSize)
				}
				kinds = append(kinds, kind)
			}
			kinds[len(kinds)-1].Layers += g.Layers
		}
		gs, err := model.GroupLayers(kinds, size)
		if err != nil {
			t.Fatal(err)
		}
		for i := range gs.Groups {
			if gs.Groups[i].Kind == model.RecurrentState {
				gs.Groups[i].Mode = model.AlignedState
			}
		}
		name := fmt.Sprintf("%s, budget %s, async %s", field("model"), field("budget"), field("async"))
		equal := func(what string, got, want any) {
			t.Helper()
			if got != want {
				t.Errorf("%s: %s %v (want %v)", name, what, got, want)
			}
		}
		most, inFlight := number("max_model_len"), number("budget")*(1+number("async"))
		var list, blocks []string
		for i, g := range gs.Groups {
			blocks = append(blocks, strconv.Itoa(g.Most(most, inFlight)))
			g.Mode = 0
			list = append(list, fmt.Sprint(g))
			if i < len(want) {
				equal("group", fmt.Sprint(g), fmt.Sprint(want[i]))
			}
		}
		equal("groups", len(list), number("groups"))
		equal("layers of the largest group", gs.LargestGroup(), number("group_size"))
		pool := number("memory") / int(gs.BlockBytes())
		equal("blocks", pool, number("num_blocks"))
		equal("blocks of a sequence", strings.Join(blocks, "+"), field("max_blocks_per_request_by_group"))
		concurrency := strconv.FormatFloat(float64(pool)/float64(gs.MostBlocks(most, inFlight)), 'f', 4, 64)
		concurrency = strings.TrimRight(concurrency, "0")
		if strings.HasSuffix(concurrency, ".") {
			concurrency += "0"
		}
		equal("concurrency", concurrency, field("max_concurrency"))
		equal("longest sequence", gs.Longest(number("memory2")/int(gs.BlockBytes()), inFlight),
			number("longest_max_model_len_in_memory2"))
	}
}

// TestCacheGroupsOfModels checks the groups of catalog models.
func TestCacheGroupsOfModels(t *testing.T) {
	const swa, full = "{sliding window 9 1024 16 0}", "{full attention 10 0 16 0}"
	chunked := strings.Repeat("{chunked local attention 12 8192 16 0} ", 3)
	for name, want := range map[string]string{
		"llama-3.1-8b": "[{full attention 32 0 16 0}]",
		"gpt-oss-120b": "[{sliding window 18 128 16 0} {full attention 18 0 16 0}]",
		"gemma-3-27b": "[" + strings.Repeat(swa+" ", 4) + strings.Repeat("{sliding window 8 1024 16 0} ", 2) +
			full + "]",
		"llama-4-scout-17b-16e": "[" + chunked + "{full attention 12 0 16 0}]",
	} {
		groups := deploy(t, name, "b200", model.Options{TensorParallel: 8}).CacheGroups(16)
		if got := fmt.Sprint(groups.Groups); got != want {
			t.Errorf("%s: %s (want %s)", name, got, want)
		}
		if err := groups.Validate(); err != nil {
			t.Error(err)
		}
	}
	groups := deploy(t, "gpt-oss-120b", "b200", model.Options{}).CacheGroups(16)
	if got := groups.Held(1001); got != 9+63 { // as blockcounts.csv of the reference data has it
		t.Errorf("a sequence of 1,001 tokens holds %d blocks (want 72)", got)
	}
	uneven := model.KVGroups{{Kind: model.FullAttention, Layers: 1, TokenBytes: 2},
		{Kind: model.SlidingWindow, Layers: 1, Window: 8, TokenBytes: 3}}
	if _, err := model.GroupLayers(uneven, 16); err == nil {
		t.Error("pages that do not divide each other are no fault")
	}
	mixed := model.CacheGroups{Groups: []model.CacheGroup{{BlockSize: 16}, {BlockSize: 24}}}
	if got := mixed.ScheduledBlock(); got != 48 {
		t.Errorf("the scheduler's block has %d tokens (want 48)", got)
	}
	if (&model.CacheGroups{}).Validate() == nil {
		t.Error("no groups are no fault")
	}
}
