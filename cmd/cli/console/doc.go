// Package console is what the commands of the command line share: the flags of their output, result files, progress,
// errors, and how results are printed. It knows no command.
package console
