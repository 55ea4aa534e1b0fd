// Package studies holds the scenarios of the studies in its directories, for others to run.
package studies

import "embed"

// Cliffs are the scenarios in which throughput falls, under cliffs.
//
//go:embed cliffs/*.yaml
var Cliffs embed.FS
