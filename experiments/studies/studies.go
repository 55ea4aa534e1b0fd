// Package studies embeds the scenarios of the studies in its directories.
package studies

import "embed"

// Cliffs holds the scenarios of the study cliffs, in which throughput falls.
//
//go:embed cliffs/*.yaml
var Cliffs embed.FS
