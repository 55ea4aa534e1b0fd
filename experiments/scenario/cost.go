package scenario

import "clifftop/report/collect"

// Cost holds prices.
type Cost struct {
	// GPUHour is the price of one GPU for one hour, in US dollars; null is the middle of the catalog's range.
	GPUHour *float64 `json:"gpu_hour" range:"[0,1000000]"`
}

// Energy says what GPUs need around them, and what electricity costs and emits.
type Energy struct {
	// ServerPower is the power of a server as a multiple of that of its GPUs.
	ServerPower float64 `json:"server_power" range:"[1,10]"`
	// PUE is the power of the data centre as a multiple of that of the servers.
	PUE float64 `json:"pue" range:"[1,10]"`
	// CarbonGPerKWh is the carbon intensity of electricity in grams of CO2 equivalent per kWh; null is unknown.
	CarbonGPerKWh *float64 `json:"carbon_g_per_kwh" range:"[0,100000]"`
	// USDPerKWh is the price of electricity; null is unknown.
	USDPerKWh *float64 `json:"usd_per_kwh" range:"[0,100]"`
}

// facility is what the report takes from it.
func (e *Energy) facility() collect.Facility {
	return collect.Facility{ServerPower: e.ServerPower, PUE: e.PUE, CarbonGPerKWh: e.CarbonGPerKWh,
		USDPerKWh: e.USDPerKWh}
}
