package kvevents

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-zeromq/zmq4"

	"clifftop/internal/testenv"
)

// python returns an interpreter that has libzmq and MessagePack, as Debian's python3-zmq and python3-msgpack install
// them.
func python(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"python3", "/usr/bin/python3"} {
		if exec.Command(name, "-c", "import zmq, msgpack").Run() == nil {
			return name
		}
	}
	t.Skip("no python3 with zmq and msgpack (Debian: python3-zmq, python3-msgpack)")
	return ""
}

// TestLibzmq: a subscriber with libzmq that follows the events as routers do knows the blocks of the simulator, live
// and by a replay, and the tokens up to each block.
func TestLibzmq(t *testing.T) {
	testenv.NeedsLong(t, "runs a subscriber in Python")
	interpreter := python(t)
	for _, format := range []string{formatMap, formatArray} {
		t.Run(format, func(t *testing.T) {
			scenario := fmt.Sprintf(evicting, "vllm", ", enable_prefix_caching: true")
			p, port := publisher(t, scenario, 2, func(o *Options) { o.Format = format })
			defer p.Close()
			c := exec.Command(interpreter, "testdata/subscriber.py", fmt.Sprintf("%d,%d", port, port+1),
				fmt.Sprintf("%d,%d", port+2, port+3))
			var errors strings.Builder
			c.Stderr = &errors
			in, _ := c.StdinPipe()
			out, _ := c.StdoutPipe()
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(out)
			lines.Buffer(nil, 1<<26)
			if lines.Scan(); lines.Text() != "ready" {
				t.Fatalf("%q\n%s", lines.Text(), errors.String())
			}
			for _, r := range p.replicas {
				await(t, "subscription", func() bool { return len(r.pub.(zmq4.Topics).Topics()) > 0 })
			}
			x := conversations(2, 12, 6, 0)
			o := run(t, setup(t, scenario), x, p)
			fmt.Fprintf(in, "[%d, %d]\n", p.states[0].number, p.states[1].number)
			var got []struct {
				Blocks      [][2]string `json:"blocks"`
				LostParents int         `json:"lost_parents"`
			}
			lines.Scan()
			if err := json.Unmarshal(lines.Bytes(), &got); err != nil || len(got) != 2 {
				t.Fatalf("%v: %q\n%s", err, lines.Text(), errors.String())
			}
			if err := c.Wait(); err != nil {
				t.Fatalf("%v\n%s", err, errors.String())
			}
			known := make(map[uint64]bool)
			for i := range x.requests {
				h := uint64(0)
				for _, id := range x.text(i) {
					h = extend(h, id)
					known[h] = true
				}
			}
			for i, g := range got {
				var keys []uint64
				for _, b := range g.Blocks {
					key, _ := strconv.ParseUint(b[0], 10, 64)
					keys = append(keys, key)
					if h, _ := strconv.ParseUint(b[1], 10, 64); !known[h] {
						t.Errorf("block %d ends a text that no request has", key)
					}
				}
				slices.Sort(keys)
				if held := o.keys(i); !slices.Equal(keys, held) || g.LostParents > 0 {
					t.Errorf("replica %d: %d blocks, %d in the cache; %d parents unknown", i, len(keys), len(held), g.LostParents)
				}
			}
			t.Logf("%d and %d batches, %d and %d blocks", p.states[0].number, p.states[1].number, len(got[0].Blocks),
				len(got[1].Blocks))
		})
	}
}
