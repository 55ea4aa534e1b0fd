package scenario

import "clifftop/report/collect"

// Deployment says how one replica of the model lies on its GPUs, and how many replicas there are.
type Deployment struct {
	// TensorParallelSize splits every layer over this many GPUs.
	TensorParallelSize int `json:"tensor_parallel_size" range:"[1,1024]"`
	// PipelineParallelSize splits the layers into this many stages. With policy vllm each stage works on its own
	// batch.
	PipelineParallelSize int `json:"pipeline_parallel_size" range:"[1,1024]"`
	// DataParallelSize is the number of data-parallel ranks of a replica. Each rank has its own queue and KV cache
	// and is visible to the router. Ranks of a mixture-of-experts model iterate in lockstep.
	DataParallelSize int `json:"data_parallel_size" range:"[1,1024]"`
	// ExpertParallelSize spreads the experts of a mixture-of-experts model over this many GPUs.
	ExpertParallelSize int `json:"expert_parallel_size" range:"[1,1024]"`
	// All2AllBackend is how data-parallel ranks exchange tokens with experts. auto is the engine's default:
	// TensorRT-LLM uses flashinfer_all2allv in racks joined by NVLink; all else is allgather_reducescatter. deepep
	// takes the faster of DeepEP's two kernels, as SGLang does by phase.
	All2AllBackend string `json:"all2all_backend" one:"auto allgather_reducescatter deepep_low_latency deepep_high_throughput deepep flashinfer_all2allv"`
	// NumRedundantExperts is the number of copies of popular experts, which balance the ranks (EPLB).
	NumRedundantExperts int `json:"num_redundant_experts" range:"[0,65536]"`
	// EnableDBO divides an iteration into two batches, each of which exchanges tokens while the other one computes.
	EnableDBO bool `json:"enable_dbo"`
	// Dtype is the number format of the weights; auto is the model's own.
	Dtype string `json:"dtype" one:"auto bf16 fp16 fp8 int4 nvfp4 mxfp4"`
	// AttentionDtype is the number format of the weights around attention; auto is Dtype, but 16
	// bits in a mixture of experts in nvfp4, as published checkpoints have it.
	AttentionDtype string `json:"attention_dtype,omitempty" one:"auto bf16 fp16 fp8 int4 nvfp4 mxfp4"`
	// MoEDtype is the number format of the experts' weights; auto is the model's own, or Dtype where that
	// is given.
	MoEDtype string `json:"moe_dtype" one:"auto bf16 fp16 fp8 int4 nvfp4 mxfp4"`
	// KVCacheDtype is the number format of the KV cache; auto is 16 bits.
	KVCacheDtype string `json:"kv_cache_dtype" one:"auto bf16 fp16 fp8"`
	// MambaSSMCacheDtype is the number format of the states of recurrent layers; auto is the model's own.
	MambaSSMCacheDtype string `json:"mamba_ssm_cache_dtype,omitempty" one:"auto float32 bfloat16 float16"`
	// PowerLimit caps the power of each GPU in watts, below its design power: its clock slows down; null is no cap.
	PowerLimit *float64 `json:"power_limit" range:"(0,100000]"`
	// Replicas is the number of replicas behind the router.
	Replicas int `json:"replicas" range:"[1,4096]"`
	// Router chooses a replica for each request.
	Router Router `json:"router"`
}

// Cost holds prices.
type Cost struct {
	// GPUHour is the price of one GPU for one hour, in US dollars; null is the middle of the catalog's range.
	GPUHour *float64 `json:"gpu_hour" range:"[0,1000000]"`
}

// Energy says what GPUs need around them, and what electricity costs and emits.
type Energy struct {
	// ServerPower is the power of a server as a multiple of the power of its GPUs.
	ServerPower float64 `json:"server_power" range:"[1,10]"`
	// PUE is the power of the data centre as a multiple of the power of the servers.
	PUE float64 `json:"pue" range:"[1,10]"`
	// CarbonGPerKWh is the carbon intensity of electricity in grams of CO2 equivalent per kWh; null is unknown.
	CarbonGPerKWh *float64 `json:"carbon_g_per_kwh" range:"[0,100000]"`
	// USDPerKWh is the price of electricity; null is unknown.
	USDPerKWh *float64 `json:"usd_per_kwh" range:"[0,100]"`
}

// facility returns the part that the report needs.
func (e *Energy) facility() collect.Facility {
	return collect.Facility{ServerPower: e.ServerPower, PUE: e.PUE, CarbonGPerKWh: e.CarbonGPerKWh,
		USDPerKWh: e.USDPerKWh}
}
