package catalog

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"clifftop/model"
)

// gpuRecord is the file format of an accelerator; see README.md and the directory gpus.
type gpuRecord struct {
	Name         string   `yaml:"name"`
	Aliases      []string `yaml:"aliases"`
	Source       string   `yaml:"source"`
	Architecture string   `yaml:"architecture"`
	SMs          int      `yaml:"sms"`
	Peak         struct {
		BF16 float64 `yaml:"bf16"`
		FP8  float64 `yaml:"fp8"`
		INT8 float64 `yaml:"int8"`
		FP4  float64 `yaml:"fp4"`
	} `yaml:"peak_tflops"`
	Memory struct {
		Physical  float64 `yaml:"physical_gb"`
		Reported  float64 `yaml:"reported_gb"`
		Bandwidth float64 `yaml:"bandwidth_gb_per_s"`
		L2        float64 `yaml:"l2_mb"`
	} `yaml:"memory"`
	Links struct {
		ScaleUp float64 `yaml:"scale_up"`
		Host    float64 `yaml:"host"`
		NIC     float64 `yaml:"nic"`
	} `yaml:"links_gb_per_s"`
	Node struct {
		GPUs   int `yaml:"gpus"`
		Domain int `yaml:"domain"`
	} `yaml:"node"`
	Attention      string    `yaml:"attention"`
	AllReduceClass string    `yaml:"allreduce_class"`
	TDP            float64   `yaml:"tdp_w"`
	Power          *powerRow `yaml:"power"`
	Price          struct {
		USDPerHour  []float64 `yaml:"usd_per_hour"`
		Placeholder bool      `yaml:"placeholder"`
		Source      string    `yaml:"source"`
		AsOf        string    `yaml:"as_of"` // date of the price; empty if the source has none
		Note        string    `yaml:"note"`
	} `yaml:"price"`
	Calibrated string     `yaml:"calibrated"`
	Kernels    kernelRows `yaml:"kernels"`
}

// ReadGPU reads a GPU record in YAML, in the format of the catalog's files or as a [CalibratedRecord]. file appears
// in messages. Missing kernel constants are filled in as for the catalog's records; a record without any is
// uncalibrated whatever it says.
func ReadGPU(file string, data []byte) (model.GPU, error) {
	var base struct {
		Base string `yaml:"base"`
	}
	if err := yaml.Unmarshal(data, &base); err == nil && base.Base != "" {
		return readCalibrated(file, data)
	}
	var r gpuRecord
	if err := decode(file, data, &r); err != nil {
		return model.GPU{}, err
	}
	g, err := r.gpu()
	if err != nil {
		return model.GPU{}, fmt.Errorf("%s: %s", file, oneLine(err))
	}
	return g, nil
}

// oneLine joins the lines of an error and drops repetitions, which occur because formats share rows of constants.
func oneLine(err error) string {
	var lines []string
	for line := range strings.SplitSeq(err.Error(), "\n") {
		line = strings.Replace(line, noINT4Row, "", 1)
		if !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "; ")
}

// priceNote describes the price: source, date and note.
func (r *gpuRecord) priceNote() string {
	p := &r.Price
	parts := []string{p.Source, p.AsOf, p.Note, ""}
	if p.Placeholder {
		parts[3] = "a placeholder"
	}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), ", ")
}

func (r *gpuRecord) gpu() (model.GPU, error) {
	const giga, tera = 1e9, 1e12
	g := model.GPU{
		Name: canonical(r.Name), Aliases: r.Aliases, Source: r.Source, Architecture: r.Architecture, SMs: r.SMs,
		BF16FLOPs: r.Peak.BF16 * tera, FP8FLOPs: r.Peak.FP8 * tera, FP4FLOPs: r.Peak.FP4 * tera,
		INT8OPs:     r.Peak.INT8 * tera,
		MemoryBytes: r.Memory.Physical * giga, ReportedBytes: r.Memory.Reported * giga,
		HBMBytesPerSecond: r.Memory.Bandwidth * giga, L2Bytes: r.Memory.L2 * 1e6,
		ScaleUpBytesPerSecond: r.Links.ScaleUp * giga, HostBytesPerSecond: r.Links.Host * giga,
		NICBytesPerSecond: r.Links.NIC * giga, Node: model.NodeShape{GPUs: r.Node.GPUs, Domain: r.Node.Domain},
		AttentionBackend: model.AttentionBackend(r.Attention), AllReduceClass: r.AllReduceClass, TDPWatts: r.TDP,
		PriceNote: r.priceNote(), Calibrated: model.Calibration(r.Calibrated),
	}
	if g.Name == "" {
		return g, errors.New("name is missing")
	}
	switch p := r.Price.USDPerHour; len(p) {
	case 0:
	case 1:
		g.USDPerHour = [2]float64{p[0], p[0]}
	case 2:
		g.USDPerHour = [2]float64{p[0], p[1]}
	default:
		return g, fmt.Errorf("price.usd_per_hour has %d values (want low and high)", len(p))
	}
	switch g.Calibrated {
	case model.Calibrated, model.PartlyCalibrated, model.Uncalibrated:
	case "":
		g.Calibrated = model.PartlyCalibrated
	default:
		return g, fmt.Errorf("calibrated is %q (want yes, partly or no)", r.Calibrated)
	}
	if r.Kernels.empty() {
		g.Calibrated = model.Uncalibrated // whatever the record says
	}
	g.KernelsOf = canonical(r.Kernels.Like)
	g.Power = r.Power.constants(&g)
	var err error
	if g.Kernels, g.Tables, err = r.Kernels.resolve(&g); err != nil {
		return g, err
	}
	return g, g.Validate()
}
