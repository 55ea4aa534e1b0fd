package export

import (
	"fmt"
	"strconv"
	"strings"

	"clifftop/experiments/launch"
)

// firstPort is the port of the first engine; the router has the one before.
const firstPort = 8001

// command writes a shell script that starts every engine and the router. Engines over several machines have a line for
// each machine.
func command(j *job) ([]File, error) {
	var b strings.Builder
	b.WriteString("#!/usr/bin/env bash\n" + j.comments() + "set -euo pipefail\n")
	port, device := firstPort, 0
	var addresses [2][]string // of engines, and of those that compute prompts only
	for i := range j.system.Groups {
		g := &j.system.Groups[i]
		optionsFile := j.poolLabel(i) + ".yaml"
		if o := options(&g.Line); o != nil {
			fmt.Fprintf(&b, "\ncat > %s << 'EOF'\n%sEOF\n", quote(optionsFile), o)
		}
		for range g.Replicas {
			which := 0
			if g.Role == "prefill" {
				which = 1
			}
			addresses[which] = append(addresses[which], "http://127.0.0.1:"+strconv.Itoa(port))
			if err := j.replica(&b, g, optionsFile, port, device); err != nil {
				return nil, err
			}
			port++
			device += g.GPUsPerNode
		}
	}
	if r := j.system.Router; r != nil {
		fmt.Fprintf(&b, "\n%s &\n", join(routerCommand(r, addresses[0], addresses[1], firstPort-1)))
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

// replica writes the lines of one replica: one for each machine.
func (j *job) replica(b *strings.Builder, g *launch.Group, optionsFile string, port, device int) error {
	l := &g.Line
	base := append(program(l.Engine), arguments(l, optionsFile)...)
	base = append(base, "--port", strconv.Itoa(port))
	var prefix []string
	for _, e := range l.Env {
		prefix = append(prefix, e.Name+"="+quote(e.Value))
	}
	if g.Nodes <= 1 {
		if len(j.system.Groups) > 1 || g.Replicas > 1 {
			var ids []string
			for k := range g.GPUsPerNode {
				ids = append(ids, strconv.Itoa(device+k))
			}
			prefix = append(prefix, visibleDevices(g.Accelerator)+"="+strings.Join(ids, ","))
		}
		fmt.Fprintf(b, "\n%s%s &\n", assignments(prefix), join(base))
		return nil
	}
	for rank := range g.Nodes {
		more, err := nodeFlags(g, strconv.Itoa(rank), "LEADER", rank > 0)
		if err != nil {
			return err
		}
		fmt.Fprintf(b, "\n# on machine %d; LEADER is the address of machine 0\n%s%s &\n", rank, assignments(prefix),
			strings.ReplaceAll(join(append(append([]string{}, base...), more...)), "LEADER", `"${LEADER:-leader}"`))
	}
	return nil
}

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
			flags = append(flags, "--data-parallel-start-rank", fmt.Sprintf("$((%s * %d))", strings.Trim(rank, "$(){}"), local))
		}
	} else {
		flags = []string{"--nnodes", strconv.Itoa(g.Nodes), "--node-rank", rank, "--master-addr", leader}
	}
	if follower {
		flags = append(flags, "--headless")
	}
	return flags, nil
}

// routerCommand starts a router in front of engines.
func routerCommand(r *launch.Router, engines, prefills []string, port int) []string {
	flag := func(name string) string {
		for _, f := range r.Flags {
			if f.Name == name {
				return f.Value
			}
		}
		return ""
	}
	switch r.Kind {
	case "sglang-router":
		c := []string{"python3", "-m", "sglang_router.launch_router", "--policy", flag("policy"), "--port",
			strconv.Itoa(port)}
		if len(prefills) == 0 {
			return append(append(c, "--worker-urls"), engines...)
		}
		c = append(c, "--pd-disaggregation")
		for _, p := range prefills {
			c = append(c, "--prefill", p)
		}
		for _, d := range engines {
			c = append(c, "--decode", d)
		}
		return c
	case "dynamo-frontend":
		return []string{"python3", "-m", "dynamo.frontend", "--router-mode", cmpOr(flag("router-mode"), "kv"), "--http-port",
			strconv.Itoa(port)}
	}
	all := append(append([]string{}, prefills...), engines...)
	return []string{"vllm-router", "--port", strconv.Itoa(port), "--service-discovery", "static", "--static-backends",
		strings.Join(all, ","), "--routing-logic", cmpOr(flag("routing-logic"), "roundrobin")}
}
