package export

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"clifftop/experiments/launch"
	"clifftop/internal/pattern"
)

// firstPort is the port of the first engine; the router has the one before.
const firstPort = 8001

// command writes a shell script that starts every engine and the router. Engines over several machines have a line for
// each machine.
func command(j *job) ([]File, error) {
	var b strings.Builder
	b.WriteString("#!/usr/bin/env bash\n" + j.comments() + "set -euo pipefail\n")
	r := rack{size: max(j.setup.Pools[0].Deployment.GPU.NodeSize(), 1)}
	several := r.machines(j.system) > 1
	if several {
		b.WriteString("\n# Each machine runs its own lines: the addresses of machines 0, 1, … are $MACHINE_0, " +
			"$MACHINE_1, …\n")
	}
	port := firstPort
	var servers []server
	for i := range j.system.Groups {
		g := &j.system.Groups[i]
		optionsFile := j.poolLabel(i) + ".yaml"
		if o := options(&g.Line); o != nil {
			fmt.Fprintf(&b, "\ncat > %s << 'EOF'\n%sEOF\n", quote(optionsFile), o)
		}
		for range g.Replicas {
			machine, device := r.place(g)
			host := "127.0.0.1"
			if several {
				host = machineHost(machine)
			}
			servers = append(servers, server{host: host, port: port, group: g,
				bootstrap: firstBootstrap + port - firstPort})
			if err := j.replica(&b, g, optionsFile, place{port, machine, device, several}); err != nil {
				return nil, err
			}
			port++
		}
	}
	if r := j.system.Router; r != nil {
		config := j.name + "-router.yaml"
		if file := routerConfig(r, servers, firstPort-1); file != "" {
			end := "'EOF'"
			if several {
				end = "EOF"
			}
			fmt.Fprintf(&b, "\ncat > %s << %s\n%sEOF\n", quote(config), end, withVariables(file))
		}
		if several {
			b.WriteString("\n# on machine 0")
		}
		fmt.Fprintf(&b, "\n%s &\n", withVariables(join(routerCommand(r, servers, firstPort-1, config))))
	}
	b.WriteString("\nwait\n")
	return []File{{"serve.sh", []byte(b.String())}}, nil
}

// join is a command of a script, on several lines where it is long.
func join(words []string) string {
	const most = 100
	var b strings.Builder
	column := 0
	for i, w := range words {
		q := quote(w)
		if i > 0 {
			begins := strings.HasPrefix(w, "--") || i < 3
			if column+len(q) > most && begins {
				b.WriteString(" \\\n  ")
				column = 2
			} else {
				b.WriteByte(' ')
				column++
			}
		}
		b.WriteString(q)
		column += len(q)
	}
	return b.String()
}

// rack places replicas on machines: one after the other, and none on two machines if it fits on one.
type rack struct {
	size          int // GPUs of a machine
	machine, used int
}

// place returns the first machine of the next replica and its first GPU there.
func (r *rack) place(g *launch.Group) (machine, device int) {
	if r.used > 0 && (g.Nodes > 1 || r.used+g.GPUsPerNode > r.size) {
		r.machine, r.used = r.machine+1, 0
	}
	machine, device = r.machine, r.used
	if g.Nodes > 1 {
		r.machine += g.Nodes
		return machine, 0
	}
	r.used += g.GPUsPerNode
	return machine, device
}

func (r rack) machines(s *launch.System) int {
	for i := range s.Groups {
		for range max(s.Groups[i].Replicas, 1) {
			r.place(&s.Groups[i])
		}
	}
	if r.used > 0 {
		r.machine++
	}
	return r.machine
}

// machineHost stands for the address of a machine until [withVariables] writes the variable.
func machineHost(machine int) string { return fmt.Sprintf("MACHINE_%d_ADDRESS", machine) }

var machineHosts = pattern.New(`MACHINE_(\d+)_ADDRESS`)

// withVariables puts the variables of machines in the place of their addresses.
func withVariables(text string) string {
	return machineHosts.Get().ReplaceAllString(text, "$${MACHINE_$1:-machine-$1}")
}

// place is where a replica runs.
type place struct {
	port, machine, device int
	several               bool // machines are in use
}

// replica writes the lines of one replica: one for each machine.
func (j *job) replica(b *strings.Builder, g *launch.Group, optionsFile string, at place) error {
	l := &g.Line
	base := append(program(l.Engine), arguments(l, optionsFile)...)
	base = append(base, "--port", strconv.Itoa(at.port))
	var prefix []string
	for _, e := range l.Env {
		prefix = append(prefix, e.Name+"="+quote(e.Value))
	}
	if g.Role != "" {
		switch l.Engine {
		case "vllm": // each of its ranks has a port
			prefix = append(prefix, sideChannelPort+"="+strconv.Itoa(firstSideChannel+sideChannels*(at.port-firstPort)))
			if at.several {
				prefix = append(prefix, sideChannelHost+"="+machineHost(at.machine))
			}
		case "sglang":
			base = append(base, "--disaggregation-bootstrap-port", strconv.Itoa(firstBootstrap+at.port-firstPort))
		}
	}
	write := func(machine int, words []string) {
		if at.several {
			fmt.Fprintf(b, "\n# on machine %d", machine)
		}
		fmt.Fprintf(b, "\n%s%s &\n", withVariables(assignments(prefix)), withVariables(join(words)))
	}
	if g.Nodes <= 1 {
		if len(j.system.Groups) > 1 || g.Replicas > 1 {
			var ids []string
			for k := range g.GPUsPerNode {
				ids = append(ids, strconv.Itoa(at.device+k))
			}
			prefix = append(prefix, visibleDevices(g.Accelerator)+"="+strings.Join(ids, ","))
		}
		write(at.machine, base)
		return nil
	}
	for rank := range g.Nodes {
		more, err := nodeFlags(g, strconv.Itoa(rank), machineHost(at.machine), rank > 0)
		if err != nil {
			return err
		}
		write(at.machine+rank, slices.Concat(base, more))
	}
	return nil
}

// Ports and variables of engines that hand KV to each other: vLLM's NIXL connector reads the variables, SGLang has a
// port for the start of transfers. Two engines on one machine need different ones.
const (
	sideChannelPort  = "VLLM_NIXL_SIDE_CHANNEL_PORT"
	sideChannelHost  = "VLLM_NIXL_SIDE_CHANNEL_HOST"
	firstSideChannel = 20_000
	sideChannels     = 64 // ports between two engines
	firstBootstrap   = 9_001
)

func assignments(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return strings.Join(list, " ") + " "
}

// visibleDevices is the variable that chooses GPUs.
func visibleDevices(gpu string) string {
	if strings.HasPrefix(gpu, "mi") {
		return "HIP_VISIBLE_DEVICES"
	}
	return "CUDA_VISIBLE_DEVICES"
}

// nodeFlags are the flags of one machine of a replica that has several. rank and leader may be variables.
func nodeFlags(g *launch.Group, rank, leader string, follower bool) ([]string, error) {
	l := &g.Line
	switch l.Engine {
	case "sglang":
		return []string{"--node-rank", rank, "--dist-init-addr", leader + ":20000"}, nil
	case "trtllm":
		return nil, refuse("deployment", "TensorRT-LLM over %d machines is started by mpirun, which is not exported "+
			"(want GPUs of one machine)", g.Nodes)
	}
	local := 0
	for _, f := range l.Flags {
		if f.Name == "data-parallel-size-local" {
			local, _ = strconv.Atoi(f.Value)
		}
	}
	var flags []string
	if local > 0 {
		flags = []string{"--data-parallel-address", leader, "--data-parallel-rpc-port", "13345"}
		if n, err := strconv.Atoi(rank); err == nil && n > 0 {
			flags = append(flags, "--data-parallel-start-rank", strconv.Itoa(n*local))
		} else if err != nil {
			flags = append(flags, "--data-parallel-start-rank",
				fmt.Sprintf("$((%s * %d))", strings.Trim(rank, "$(){}"), local))
		}
	} else {
		flags = []string{"--nnodes", strconv.Itoa(g.Nodes), "--node-rank", rank, "--master-addr", leader}
	}
	if follower {
		flags = append(flags, "--headless")
	}
	return flags, nil
}
