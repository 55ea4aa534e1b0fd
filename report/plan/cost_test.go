package plan_test

import (
	"math"
	"slices"
	"testing"

	"clifftop/report"
	"clifftop/report/plan"
)

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if !(math.Abs(got-want) <= 1e-9*math.Abs(want)) {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

// $3 an hour at 4,000 tokens/s are 14.4 million tokens an hour; $10 at 10,000 are 36 million, and so $0.000278 per
// thousand.
func TestUSDPerMillion(t *testing.T) {
	near(t, "$3/h at 4000 tokens/s", *plan.USDPerMillion(3, 4000), 3/14.4)
	near(t, "$10/h at 10000 tokens/s", *plan.USDPerMillion(10, 10_000), 10./36)
	near(t, "$10/h at 1000 tokens/s", *plan.USDPerMillion(10, 1000), 100./36)
	if plan.USDPerMillion(3, 0) != nil {
		t.Error("tokens that are not there have a price")
	}
}

func TestReplicas(t *testing.T) {
	for _, k := range []struct {
		rate, capacity float64
		want           int
	}{{0.1, 5, 1}, {5, 5, 1}, {5.01, 5, 2}, {10, 10. / 3, 3}, {0.7, 0.1, 7}, {0, 3, 1}} {
		if n := plan.Replicas(k.rate, k.capacity); n != k.want {
			t.Errorf("%v at %v each takes %d, want %d", k.rate, k.capacity, n, k.want)
		}
	}
}

// Eight hours at 1, eight at 4 and eight at 2, each replica carrying 1: 56 replica-hours a day where 96 stand; the day
// has five starts of half an hour each, three up to 4 and none down; from 2 to 1 none.
func TestAutoscale(t *testing.T) {
	hourly := slices.Concat(slices.Repeat([]float64{1}, 8), slices.Repeat([]float64{4}, 8),
		slices.Repeat([]float64{2}, 8))
	a := plan.Autoscale(hourly, 1, 1800)
	if a.Static != 4 || a.ReplicasByHour[0] != 1 || a.ReplicasByHour[8] != 4 || a.ReplicasByHour[23] != 2 {
		t.Errorf("%d static, by hour %v", a.Static, a.ReplicasByHour)
	}
	near(t, "peak to mean", a.PeakToMean, 4/(56./24))
	near(t, "paid idle", a.PaidIdle, 1-56./96)
	near(t, "replica-hours per hour", a.ReplicaHours(), (56+3*0.5)/24)
	a.Price(10)
	near(t, "static", *a.StaticUSDPerMonth, 4*10*730)
	near(t, "autoscaled", *a.USDPerMonth, 57.5/24*10*730)
}

// Eight GPUs at $36,500 each over 4 years, 1 kW each at a PUE of 1.25 and $0.10/kWh, and $1,000 of staff a month.
func TestOnPrem(t *testing.T) {
	c := plan.OnPrem(plan.OnPremInput{GPUs: 8, USDPerGPU: 36_500, LifeYears: 4, WattsPerGPU: 1000, PUE: 1.25,
		USDPerKWh: 0.1, StaffUSDPerMonth: 1000}, 2.5)
	near(t, "capex", c.CapexUSD, 292_000)
	near(t, "power", c.PowerUSDPerMonth, 730)
	near(t, "a month", c.USDPerMonth, 292_000./48+730+1000)
	near(t, "cloud", c.CloudUSDPerMonth, 14_600)
	near(t, "utilisation", c.BreakEvenUtilisation, (292_000./48+1730)/14_600)
	near(t, "month", *c.BreakEvenMonth, 292_000./(14_600-1730))
	if dear := plan.OnPrem(plan.OnPremInput{GPUs: 1, USDPerGPU: 1000, LifeYears: 1, StaffUSDPerMonth: 5000, PUE: 1},
		1); dear.BreakEvenMonth != nil {
		t.Error("what saves nothing pays for itself")
	}
}

// 1,000 tokens in at $1 and 500 out at $4 per million are $0.003 a request.
func TestAPIBreakEven(t *testing.T) {
	a := plan.APIBreakEven(0.003, 2, 5, 7884)
	near(t, "API", a.APIUSDPerMonth, 0.003*2*730*3600)
	near(t, "break-even", a.BreakEvenRequestsPerS, 1)
	if !a.PlanCarries || plan.APIBreakEven(0.0003, 2, 5, 7884).PlanCarries {
		t.Error("1 request/s is within 5, and 10 is not")
	}
}

// Two GPUs of 437.5 W in servers with half as much again: 875 W and 1,312.5 W.
func TestEnergyAt(t *testing.T) {
	e := plan.EnergyAt(&report.Energy{}, 2, 437.5, 1.5, 1000)
	near(t, "power", *e.Kilowatts, 0.875)
	near(t, "servers", *e.ServerKilowatts, 1.3125)
	near(t, "energy", *e.WattHoursPerMillionToks, 875./3600*1000)
}

// Replicas lie in whole nodes.
func TestWholeNodes(t *testing.T) {
	for _, c := range []struct{ replicas, gpus, node, count, idle int }{
		{21, 1, 8, 3, 3}, {8, 1, 8, 1, 0}, {3, 3, 8, 2, 7}, {2, 16, 8, 4, 0}, {1, 6, 4, 2, 2}, {5, 1, 1, 5, 0},
	} {
		if n := plan.WholeNodes(c.replicas, c.gpus, c.node); n.Count != c.count || n.IdleGPUs != c.idle {
			t.Errorf("%d of %d GPUs: %+v, want %d nodes, %d idle", c.replicas, c.gpus, n, c.count, c.idle)
		}
	}
}
