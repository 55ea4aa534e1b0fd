package launch

import (
	"fmt"
	"slices"
	"strings"

	"clifftop/experiments/scenario/yamldoc"
)

// Assemble makes a system of the commands of one script: the lines of several machines that are one engine become one
// group, and lines with the roles prefill and decode become two. Lines that are alternatives, as in documentation, are
// an error that lists them, unless choice names one by its number from 1.
func Assemble(file string, commands []Command, notes []Note, choice int) (*System, error) {
	s := &System{Notes: notes}
	for _, c := range commands {
		if c.Router != nil && s.Router == nil {
			s.Router = c.Router
		}
	}
	for _, c := range commands {
		if c.Line == nil {
			continue
		}
		if c.Line.Stack != "" {
			s.Stack = c.Line.Stack
		}
		if c.Line.follower() {
			continue
		}
		g := Group{Replicas: 1, Nodes: c.Line.nodes(), Role: c.Line.RoleOf(), GPUsPerNode: c.Line.GPUs, Line: *c.Line,
			At: c.Line.At}
		if g.Role == "" && s.Router != nil {
			g.Role = s.Router.roleOf(c.Line)
		}
		equal := func(h Group) bool { return h.Line.Same(&g.Line) && h.Role == g.Role }
		if i := slices.IndexFunc(s.Groups, equal); i >= 0 {
			s.Groups[i].Replicas++
			continue
		}
		s.Groups = append(s.Groups, g)
	}
	if choice > len(s.Groups) {
		return nil, yamldoc.Faults{{Where: "--line", Problem: fmt.Sprintf("%d is not allowed (want 1 to %d)", choice,
			len(s.Groups))}}
	}
	if choice > 0 {
		s.Groups = s.Groups[choice-1 : choice]
	}
	// dynamo starts a decode worker without a role beside a prefill worker.
	apart := slices.ContainsFunc(s.Groups, func(g Group) bool { return g.Role == "prefill" })
	plain := slices.IndexFunc(s.Groups, func(g Group) bool { return g.Role == "" })
	if apart && plain >= 0 && len(s.Groups) == 2 {
		s.Groups[plain].Role = "decode"
	}
	if len(s.Groups) > 1 && !apart {
		var lines []string
		for i, g := range s.Groups {
			lines = append(lines, fmt.Sprintf("%d is line %d", i+1, g.At.Line))
		}
		return nil, yamldoc.Faults{{Where: file, Hint: strings.Join(lines, ", "),
			Problem: fmt.Sprintf("%d different engines are launched here (want one; --line N chooses it)",
				len(s.Groups))}}
	}
	return s, nil
}

// follower reports whether a line starts a further machine of an engine.
func (l *Line) follower() bool {
	for _, f := range l.Flags {
		n, number := humanInt(f.Value)
		switch plainName(f.Name) {
		case "headless":
			return true
		case "node-rank", "data-parallel-start-rank":
			if number && n > 0 {
				return true
			}
		}
	}
	return false
}

// nodes is the number of machines of the engine.
func (l *Line) nodes() int {
	size, local := 0, 0
	for _, f := range l.Flags {
		n, ok := humanInt(f.Value)
		if !ok {
			continue
		}
		switch plainName(f.Name) {
		case "nnodes":
			return max(n, 1)
		case "data-parallel-size":
			size = n
		case "data-parallel-size-local":
			local = n
		}
	}
	if size > 0 && local > 0 {
		return max((size+local-1)/local, 1)
	}
	return 1
}

// ownFlags differ between equal replicas: their addresses and devices.
var ownFlags = []string{"port", "host", "node-rank", "dist-init-addr", "base-gpu-id", "device-ids", "kv-events-config",
	"disaggregation-bootstrap-port", "data-parallel-start-rank", "data-parallel-rank", "side-channel-port", "nccl-port",
	"data-parallel-address", "data-parallel-rpc-port", "master-addr", "master-port"}

// Same reports whether two lines launch equal engines, apart from their addresses.
func (l *Line) Same(m *Line) bool {
	if l.Engine != m.Engine || l.Model != m.Model || l.Image != m.Image {
		return false
	}
	key := func(list []Flag) (keys []string) {
		for _, f := range list {
			if !slices.Contains(ownFlags, plainName(f.Name)) {
				keys = append(keys, plainName(f.Name)+"="+f.Value)
			}
		}
		slices.Sort(keys)
		return keys
	}
	return slices.Equal(key(l.Flags), key(m.Flags))
}
