package plan

import (
	"math"

	"clifftop/report"
)

// The arithmetic of costs. Rates are per second, prices in US dollars.

// HoursPerMonth is a twelfth of a year.
const HoursPerMonth = 730

// USDPerMillion is the cost of a million tokens, of a system that costs usdPerHour and delivers tokensPerS:
// usdPerHour / (tokensPerS · 3600) · 10⁶. It is nil without tokens.
func USDPerMillion(usdPerHour, tokensPerS float64) *float64 {
	if !(tokensPerS > 0) {
		return nil
	}
	v := usdPerHour / (tokensPerS * 3600) * 1e6
	return &v
}

// Replicas is the least number of copies that carry a rate when each carries one of capacity: ⌈rate/capacity⌉, and at
// least 1.
func Replicas(rate, capacity float64) int {
	const slack = 1e-9 // a rate that was divided by n is carried by n
	return max(1, int(math.Ceil(rate/capacity*(1-slack))))
}

// Autoscaling compares replicas that stand all the time with such that follow the hours.
type Autoscaling struct {
	PeakToMean float64 `json:"peak_to_mean"`
	// ReplicasByHour follow the load. A replica that is needed in an hour starts before it.
	ReplicasByHour []int   `json:"replicas_by_hour"`
	Static         int     `json:"static_replicas"`
	StartUpS       float64 `json:"start_up_s"`
	// StaticUSDPerMonth and USDPerMonth are the two costs; nil without a price.
	StaticUSDPerMonth *float64 `json:"static_usd_per_month"`
	USDPerMonth       *float64 `json:"usd_per_month"`
	// PaidIdle is the part of the static replicas' hours that the hours' load does not need.
	PaidIdle float64 `json:"paid_idle_fraction"`
}

// Autoscale finds the replicas for each hour of a repeating list of hourly rates. Added replicas start startUpS seconds
// before their hour, and are paid from that time.
func Autoscale(hourly []float64, capacity, startUpS float64) *Autoscaling {
	a := &Autoscaling{StartUpS: startUpS}
	sum, peak := 0.0, 0.0
	for _, rate := range hourly {
		n := Replicas(rate, capacity)
		a.ReplicasByHour = append(a.ReplicasByHour, n)
		a.Static = max(a.Static, n)
		sum, peak = sum+rate, max(peak, rate)
	}
	if sum == 0 {
		return nil
	}
	hours := float64(len(hourly))
	a.PeakToMean = peak * hours / sum
	a.PaidIdle = 1 - float64(a.needed())/(float64(a.Static)*hours)
	return a
}

func (a *Autoscaling) needed() int {
	sum := 0
	for _, n := range a.ReplicasByHour {
		sum += n
	}
	return sum
}

// ReplicaHours are the hours of replicas that are paid in an hour on average, starts included.
func (a *Autoscaling) ReplicaHours() float64 {
	hours := len(a.ReplicasByHour)
	sum := float64(a.needed())
	for i, n := range a.ReplicasByHour {
		before := a.ReplicasByHour[(i+hours-1)%hours]
		sum += float64(max(0, n-before)) * a.StartUpS / 3600
	}
	return sum / float64(hours)
}

// Price fills the costs in, of replicas at so much an hour.
func (a *Autoscaling) Price(usdPerReplicaHour float64) {
	static, following := usdPerReplicaHour*float64(a.Static)*HoursPerMonth,
		usdPerReplicaHour*a.ReplicaHours()*HoursPerMonth
	a.StaticUSDPerMonth, a.USDPerMonth = &static, &following
}

// OnPremInput has the costs of GPUs that are bought.
type OnPremInput struct {
	GPUs             int     `json:"gpus"`
	USDPerGPU        float64 `json:"usd_per_gpu"`
	LifeYears        float64 `json:"life_years"`
	WattsPerGPU      float64 `json:"watts_per_gpu"` // of the server, without the share of the data centre
	PUE              float64 `json:"pue"`
	USDPerKWh        float64 `json:"usd_per_kwh"`
	StaffUSDPerMonth float64 `json:"staff_usd_per_month"`
}

// OnPremCost compares GPUs of one's own with rented ones.
type OnPremCost struct {
	OnPremInput
	CapexUSD         float64 `json:"capex_usd"`
	PowerUSDPerMonth float64 `json:"power_usd_per_month"`
	// OpexUSDPerMonth is power and staff, and USDPerMonth that and the write-off.
	OpexUSDPerMonth  float64 `json:"opex_usd_per_month"`
	USDPerMonth      float64 `json:"usd_per_month"`
	USDPerGPUHour    float64 `json:"usd_per_gpu_hour"`
	CloudUSDPerMonth float64 `json:"cloud_usd_per_month"`
	// BreakEvenUtilisation is the part of the time for which rented GPUs cost as much as bought ones: below it renting
	// by the hour is cheaper. Above 1 renting is always cheaper.
	BreakEvenUtilisation float64 `json:"break_even_utilisation"`
	// BreakEvenMonth is when what was saved has paid for the purchase; nil if it never does.
	BreakEvenMonth *float64 `json:"break_even_month"`
}

// OnPrem computes:
//
//	power        = GPUs · watts · PUE · 730 h · $/kWh / 1000
//	$/month      = capex / (12 · life) + power + staff
//	utilisation  = $/month / cloud's $/month
//	month        = capex / (cloud's $/month − power − staff)
func OnPrem(in OnPremInput, cloudUSDPerGPUHour float64) *OnPremCost {
	c := &OnPremCost{OnPremInput: in}
	n := float64(in.GPUs)
	c.CapexUSD = n * in.USDPerGPU
	c.PowerUSDPerMonth = n * in.WattsPerGPU / 1000 * in.PUE * HoursPerMonth * in.USDPerKWh
	c.OpexUSDPerMonth = c.PowerUSDPerMonth + in.StaffUSDPerMonth
	c.USDPerMonth = c.CapexUSD/(12*in.LifeYears) + c.OpexUSDPerMonth
	c.USDPerGPUHour = c.USDPerMonth / (n * HoursPerMonth)
	c.CloudUSDPerMonth = n * cloudUSDPerGPUHour * HoursPerMonth
	if c.CloudUSDPerMonth > 0 {
		c.BreakEvenUtilisation = c.USDPerMonth / c.CloudUSDPerMonth
	} else {
		c.BreakEvenUtilisation = math.MaxFloat64
	}
	if saved := c.CloudUSDPerMonth - c.OpexUSDPerMonth; saved > 0 {
		month := c.CapexUSD / saved
		c.BreakEvenMonth = &month
	}
	return c
}

// APIComparison compares a plan with an API that is paid by the token.
type APIComparison struct {
	USDPerRequest  float64 `json:"usd_per_request"`
	APIUSDPerMonth float64 `json:"api_usd_per_month"` // at the mean load
	OwnUSDPerMonth float64 `json:"own_usd_per_month"`
	// BreakEvenRequestsPerS is the mean load at which both cost the same; below it the API is cheaper.
	BreakEvenRequestsPerS float64 `json:"break_even_requests_per_s"`
	// PlanCarries says whether the plan carries that load.
	PlanCarries bool `json:"plan_carries"`
}

// APIBreakEven compares a plan that costs ownUSDPerMonth, whatever the load, with an API at so much per request.
func APIBreakEven(usdPerRequest, meanRate, planned, ownUSDPerMonth float64) *APIComparison {
	const seconds = HoursPerMonth * 3600
	a := &APIComparison{
		USDPerRequest: usdPerRequest, APIUSDPerMonth: usdPerRequest * meanRate * seconds,
		OwnUSDPerMonth:        ownUSDPerMonth,
		BreakEvenRequestsPerS: ownUSDPerMonth / (usdPerRequest * seconds),
	}
	a.PlanCarries = a.BreakEvenRequestsPerS <= planned
	return a
}

// EnergyAt returns power and energy of a number of GPUs with a power in watts each, in servers that draw serverPower
// times the power of their GPUs. Energy per token counts the GPUs, at tokensPerS tokens per second.
func EnergyAt(s *report.Energy, gpus int, watts, serverPower, tokensPerS float64) Energy {
	kw := float64(gpus) * watts / 1000
	servers := kw * serverPower
	e := Energy{Kilowatts: &kw, ServerKilowatts: &servers, CarbonPerMillion: s.CarbonPerMillion,
		USDPerMillion: s.USDPerMillion}
	if tokensPerS > 0 {
		wh := kw * 1000 / 3600 / tokensPerS * 1e6
		e.WattHoursPerMillionToks = &wh
	}
	return e
}
