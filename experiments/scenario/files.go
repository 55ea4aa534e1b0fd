package scenario

import (
	"errors"
	"io"
	"os"

	"clifftop/experiments/scenario/yamldoc"
	"clifftop/internal/input"
)

// readFile reads a file of at most MaxBytes and one byte more.
func readFile(path string) ([]byte, error) { return readUpTo(path, yamldoc.MaxBytes) }

// readUpTo reads a file of at most so many bytes and one more.
func readUpTo(path string, most int64) ([]byte, error) {
	f, err := input.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return nil, errors.New("this is a directory (want a file)")
	}
	return io.ReadAll(io.LimitReader(f, most+1))
}

// PlainFileError strips the operation and the path from an error of the file system.
func PlainFileError(err error) string {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}
