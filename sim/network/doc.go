// Package network simulates transfers over links of limited bandwidth. Transfers on a link share it by max-min
// fairness: each gets an equal share of its bottleneck link, and bandwidth that it cannot use because of another link
// goes to the others. Start with [Network].
package network
