// Package notices holds the licences of the third-party parts of the programs.
package notices

import _ "embed"

// Text is the list of third-party parts with the texts of their licences, as Markdown.
//
//go:embed THIRD_PARTY_NOTICES.md
var Text string
