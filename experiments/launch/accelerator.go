package launch

import (
	"strings"

	"clifftop/experiments/scenario/yamldoc"
	"clifftop/internal/pattern"
	"clifftop/model/catalog"
)

// accelerators are parts of node labels and types of machines with the GPU of the catalog.
var accelerators = []struct {
	part *pattern.Pattern
	gpu  string
}{
	{pattern.New(`(?i)gb300`), "gb300"}, {pattern.New(`(?i)gb200|^a4x|p6e-gb200`), "gb200"},
	{pattern.New(`(?i)gh200`), "gh200"},
	{pattern.New(`(?i)b300|^p6-b300`), "b300"}, {pattern.New(`(?i)b200|^p6-b200|^a4-`), "b200"},
	{pattern.New(`(?i)h200|^p5en|^p5e\.|^a3-ultra|nd_?h200`), "h200"},
	{pattern.New(`(?i)h100.*nvl`), "h100-nvl"}, {pattern.New(`(?i)h100.*pcie`), "h100-pcie"},
	{pattern.New(`(?i)h100|^p5\.|^a3-(high|mega|edge)`), "h100"},
	{pattern.New(`(?i)\bh20\b`), "h20"},
	{pattern.New(`(?i)a100.*40|^p4d|nvidia-tesla-a100|^a2-high|^a2-mega`), "a100-40gb"},
	{pattern.New(`(?i)a100.*pcie`), "a100-80gb-pcie"},
	{pattern.New(`(?i)a100|^p4de|^a2-ultra`), "a100-80gb"},
	{pattern.New(`(?i)l40s|^g6e\.`), "l40s"}, {pattern.New(`(?i)\bl40\b`), "l40"},
	{pattern.New(`(?i)\bl4\b|^g6\.|^g2-standard`), "l4"}, {pattern.New(`(?i)a10g|^g5\.`), "a10g"},
	{pattern.New(`(?i)\ba40\b`), "a40"}, {pattern.New(`(?i)a6000`), "rtx-a6000"},
	{pattern.New(`(?i)rtx.?pro.?6000.*(workstation|-ws)`), "rtx-pro-6000-ws"},
	{pattern.New(`(?i)rtx.?pro.?6000`), "rtx-pro-6000-se"}, {pattern.New(`(?i)4090`), "rtx-4090"},
	{pattern.New(`(?i)mi355`), "mi355x"}, {pattern.New(`(?i)mi325`), "mi325x"},
	{pattern.New(`(?i)mi300`), "mi300x"}, {pattern.New(`(?i)t4\b|^g4dn`), "t4"},
	{pattern.New(`(?i)v100|^p3\.`), "v100"}, {pattern.New(`(?i)gaudi.?3`), "gaudi3"},
	{pattern.New(`(?i)trn2|trainium.?2`), "trainium2"},
}

// gpuNamed returns the GPU of the catalog that a label or a type of machine names; ok is false if there is none.
func gpuNamed(written string) (name string, ok bool) {
	if g, err := catalog.GPU(written); err == nil {
		return g.Name, true
	}
	for _, a := range accelerators {
		if a.part.Get().MatchString(written) {
			g, err := catalog.GPU(a.gpu)
			return g.Name, err == nil
		}
	}
	return "", false
}

// gpu sets the GPU: that of the options, or what the file asks for.
func (b *builder) gpu(o ImportOptions) {
	written := b.group.Accelerator
	switch {
	case o.GPU != "":
		if _, err := catalog.GPU(o.GPU); err != nil && !strings.ContainsAny(o.GPU, "/.") {
			if !b.system.faultedGPU {
				b.system.faultedGPU = true
				b.faults = append(b.faults, &yamldoc.Fault{Where: "--gpu", Hint: "clifftop catalog gpus lists all of " +
					"them",
					Problem: strings.TrimPrefix(err.Error(), "catalog: ")})
			}
			return
		}
		b.put("gpu", text(o.GPU), Flag{Name: "gpu", Value: o.GPU})
	case written == "" && o.DefaultGPU != "":
		b.put("gpu", text(o.DefaultGPU), Flag{})
	case written == "":
		if !b.system.faultedGPU {
			b.system.faultedGPU = true
			b.fault(Flag{Name: "gpu", At: b.line.At}, "",
				"the file does not say which GPU it runs on (want --gpu NAME, one of clifftop catalog gpus)")
		}
	default:
		name, ok := gpuNamed(written)
		if !ok {
			b.fault(Flag{Name: "gpu", At: b.group.AcceleratorAt, File: true}, "",
				"%q is no GPU of the catalog (want --gpu NAME, one of clifftop catalog gpus)",
				strings.TrimSpace(written))
			return
		}
		b.put("gpu", text(name), Flag{Name: "accelerator", Value: written, File: true, At: b.group.AcceleratorAt})
	}
}
