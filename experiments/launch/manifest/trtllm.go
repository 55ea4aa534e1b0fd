package manifest

import (
	"fmt"
	"strings"

	"clifftop/experiments/launch"
	"clifftop/experiments/launch/shell"
	"clifftop/experiments/scenario/yamldoc"
)

// Shapes: NVIDIA/TensorRT-LLM, tensorrt_llm/llmapi/disagg_utils.py and examples/disaggregated.

func isDisaggregated(_ string, data []byte) bool {
	return hasKey(data, "context_servers") && hasKey(data, "generation_servers")
}

// readDisaggregated reads the configuration of trtllm-serve disaggregated.
func readDisaggregated(name string, data []byte, o Options) (*launch.System, error) {
	r := newReader(name, data, o)
	if err := disaggregated(r, data); err != nil {
		return nil, err
	}
	return r.finish()
}

// disaggregated reads the pools of servers: what stands at the top holds for both.
func disaggregated(r *reader, data []byte) error {
	docs, err := r.documents(data)
	if err != nil {
		return err
	}
	if len(docs) == 0 {
		return nil
	}
	d := docs[0]
	r.system.Router = &launch.Router{Kind: "trtllm-disaggregated", At: d.At}
	for _, pool := range []struct{ key, role string }{{"context_servers", "prefill"},
		{"generation_servers", "decode"}} {
		n := d.Lookup(pool.key)
		if n == nil {
			continue
		}
		if kind := text(n, "router", "type"); kind != "" {
			at := n.Lookup("router", "type").At
			r.system.Router.Flags = append(r.system.Router.Flags,
				launch.Flag{Name: pool.key + ".router.type", Value: kind, File: true, At: at})
		}
		model := n.Lookup("model")
		if model == nil {
			model = d.Lookup("model")
		}
		c := &container{at: n.At, command: wordsAt(n.At, "trtllm-serve", "serve")}
		if model != nil {
			c.command = wordsAt(model.At, "trtllm-serve", "serve", model.Text)
		}
		c.args = wordsAt(n.At, "--extra_llm_api_options", pool.key)
		c.files = map[string]mounted{}
		commands, err := r.launch(c)
		if err != nil || len(commands) == 0 || commands[0].Line == nil {
			return err
		}
		g := launch.Group{Line: *commands[0].Line, Role: pool.role, Name: pool.role, At: n.At}
		g.Line.Flags = settings(d, n)
		if g.Replicas, err = r.whole(n, 1, "num_instances"); err != nil {
			return err
		}
		r.add(g, pool.key, "")
	}
	return nil
}

// serverKeys are keys of the file that are not options of an engine.
var serverKeys = []string{"hostname", "port", "model", "backend", "context_servers", "generation_servers",
	"num_instances", "urls", "router", "max_retries", "perf_metrics_max_requests", "node_id", "disagg_cluster",
	"conditional_disagg_config",
	"schedule_style", "otlp_config"}

// settings are the options of one pool as keys of the configuration of an engine.
func settings(top, pool *yamldoc.Node) (list []launch.Flag) {
	seen := map[string]bool{}
	for _, name := range serverKeys {
		seen[name] = true
	}
	for _, n := range []*yamldoc.Node{pool, top} {
		for _, f := range n.Fields {
			if !seen[f.Name] {
				seen[f.Name] = true
				list = append(list, keysOf(f.Name, f.Value, f.At)...)
			}
		}
	}
	return list
}

// keysOf are the scalars and lists of a value as flags, with dots between the levels.
func keysOf(name string, n *yamldoc.Node, at yamldoc.Place) (list []launch.Flag) {
	if n.Kind == yamldoc.Map || name == "" {
		for _, f := range n.Fields {
			list = append(list, keysOf(yamldoc.Join(name, f.Name), f.Value, f.At)...)
		}
		return list
	}
	f := launch.Flag{Name: name, Value: n.Text, Bare: n.Kind == yamldoc.Null, File: true, At: at}
	switch n.Kind {
	case yamldoc.Bool:
		f.Value = fmt.Sprint(n.Truth)
	case yamldoc.List:
		var parts []string
		for _, item := range n.Items {
			parts = append(parts, item.Text)
		}
		f.Value = strings.Join(parts, ",")
	}
	return append(list, f)
}

// disaggregatedConfig is the file that a script gives to trtllm-serve disaggregated; "" if it has none.
func disaggregatedConfig(args []shell.Word) string {
	serve := false
	for i, w := range args {
		switch {
		case w.Text == "disaggregated" || w.Text == "disaggregated_mpi_worker":
			serve = true
		case serve && (w.Text == "-c" || w.Text == "--config_file" || w.Text == "--config") && i+1 < len(args):
			return args[i+1].Text
		}
	}
	return ""
}
