package launch

import (
	"strings"

	"clifftop/experiments/scenario/yamldoc"
)

// serverPools are the lists of servers in the configuration of trtllm-serve disaggregated, with their roles.
var serverPools = []struct{ key, role string }{{"context_servers", "prefill"}, {"generation_servers", "decode"}}

// withServers adds the pools of the configuration file that -c names, if it can be read.
func (r *Router) withServers(o ScriptOptions) error {
	for _, f := range r.Flags {
		if name := plainName(f.Name); name != "c" && name != "config-file" || f.Value == "" {
			continue
		}
		data, err := errNoFileRead(o, f.Value)
		if err != nil {
			continue
		}
		root, err := yamldoc.Parse(f.Value, data, false)
		if err != nil {
			return err
		}
		for _, pool := range serverPools {
			if n := root.Get(pool.key); n != nil {
				r.Flags = append(r.Flags, keysOf(pool.key, n)...)
			}
		}
		return nil
	}
	return nil
}

// roleOf is the role of a server that the configuration of the router lists by its port; "" if it does not.
func (r *Router) roleOf(l *Line) string {
	port := ""
	for _, f := range l.Flags {
		if plainName(f.Name) == "port" {
			port = f.Value
		}
	}
	if port == "" || l.Engine != "trtllm" {
		return ""
	}
	for _, pool := range serverPools {
		for _, f := range r.Flags {
			if f.Name != pool.key+".urls" {
				continue
			}
			for url := range strings.SplitSeq(f.Value, ",") {
				if strings.HasSuffix(strings.TrimSuffix(url, "/"), ":"+port) {
					return pool.role
				}
			}
		}
	}
	return ""
}
