// Package traces generates, inspects and converts recorded traffic.
package traces
