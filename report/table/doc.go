// Package table writes the summary of a run as text or Markdown for people, in lines of at most 80 columns.
//
// Start with [Write] and [WriteMarkdown].
package table
