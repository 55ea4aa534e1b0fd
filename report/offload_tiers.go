package report

// Offload has the use of the tiers beyond the KV pool in the window.
type Offload struct {
	// LoadedInput is the number of prompt tokens that were loaded for first admissions, and HitRate the fraction of
	// prompt tokens that they are. Tokens found in the prefix cache, or computed by another replica, are not among
	// them.
	LoadedInput int64    `json:"loaded_input"`
	HitRate     *float64 `json:"hit_rate"`
	// LoadMs is the mean time that a request whose KV was loaded waited for it.
	LoadMs *float64 `json:"load_ms"`
	// Tiers are in the order of the scenario.
	Tiers []TierUse `json:"tiers"`
}

// TierUse is the traffic of a tier, over all replicas.
type TierUse struct {
	Name         string `json:"name"`
	StoredBlocks int64  `json:"stored_blocks"`
	StoredBytes  int64  `json:"stored_bytes"`
	LoadedBlocks int64  `json:"loaded_blocks"`
	LoadedBytes  int64  `json:"loaded_bytes"`
	// LinkBusyFraction is the part of the window in which the link of a replica's tier had something to carry, on
	// average, of the time that was paid for.
	LinkBusyFraction *float64 `json:"link_busy_fraction"`
}
