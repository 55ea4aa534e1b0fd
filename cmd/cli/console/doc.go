// Package console has the parts that the commands share: output flags, result files, progress, errors, and the printing
// of results. It imports no command.
package console
