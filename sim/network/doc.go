// Package network simulates transfers over links of limited bandwidth. Transfers that meet on a link share it by
// max-min fairness: each gets an equal share of its bottleneck link, and the bandwidth that it cannot use elsewhere
// goes to the others. Start with [Network].
package network
