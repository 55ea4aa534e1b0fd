// Package hours judges a service-level objective hour by hour: [Judge] simulates hours that are independent of each
// other and says which of them meet it, and [Verdict] says what the hours show about the share of all hours that do.
package hours
