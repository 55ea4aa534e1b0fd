// Package merge joins the results that the tasks of a grid have kept into a curve or a verdict.
package merge
