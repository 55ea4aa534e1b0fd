package shell

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"mvdan.cc/sh/v3/interp"
)

// clean is the key of a file in [Result.Files]: a slashed path without the folder of the script.
func clean(name string) string {
	name = path.Clean(filepath.ToSlash(name))
	if wd, err := os.Getwd(); err == nil {
		name = strings.TrimPrefix(name, filepath.ToSlash(wd)+"/")
	}
	return name
}

// File returns a file that the script wrote, by the name that the script gives it.
func (r *Result) File(name string) ([]byte, bool) {
	data, ok := r.Files[clean(name)]
	return data, ok
}

// memory is an open file of a script.
type memory struct {
	limited
	r    *runner
	name string
	read *bytes.Reader // nil for writing
}

func (m *memory) Read(p []byte) (int, error) {
	if m.read == nil {
		return 0, io.EOF
	}
	return m.read.Read(p)
}

// Close keeps what was written.
func (m *memory) Close() error {
	if m.read == nil {
		m.r.result.Files[m.name] = bytes.Clone(m.Bytes())
	}
	return nil
}

// open opens a file in memory, or reads one beside the script.
func (r *runner) open(_ context.Context, name string, flag int, _ fs.FileMode) (io.ReadWriteCloser, error) {
	key := clean(name)
	if key == "/dev/null" {
		return &memory{r: r, name: key, read: bytes.NewReader(nil)}, nil
	}
	data, kept := r.result.Files[key]
	if flag&(os.O_WRONLY|os.O_RDWR) != 0 {
		m := &memory{r: r, name: key}
		if flag&os.O_APPEND != 0 {
			m.Write(data)
		}
		return m, nil
	}
	if !kept {
		var err error
		if data, err = r.readBeside(key); err != nil {
			return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
		}
	}
	return &memory{r: r, name: key, read: bytes.NewReader(data)}, nil
}

func (r *runner) readBeside(name string) ([]byte, error) {
	if r.options.Read == nil {
		return nil, fs.ErrNotExist
	}
	return r.options.Read(name)
}

// stat knows the files in memory; all else is a folder, so that cd works.
func (r *runner) stat(_ context.Context, name string, _ bool) (fs.FileInfo, error) {
	if data, ok := r.result.Files[clean(name)]; ok {
		return info{path.Base(name), int64(len(data)), false}, nil
	}
	if path.Ext(name) != "" {
		if data, err := r.readBeside(clean(name)); err == nil {
			return info{path.Base(name), int64(len(data)), false}, nil
		}
		return nil, fs.ErrNotExist
	}
	return info{path.Base(name), 0, true}, nil
}

// info describes a file in memory.
type info struct {
	name  string
	bytes int64
	dir   bool
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return i.bytes }
func (i info) ModTime() time.Time { return time.Time{} }
func (i info) IsDir() bool        { return i.dir }
func (i info) Sys() any           { return nil }
func (i info) Mode() fs.FileMode {
	if i.dir {
		return fs.ModeDir | 0o755
	}
	return 0o644
}

// tools are programs that scripts use to compute arguments or to write files.
var tools = map[string]func(r *runner, h interp.HandlerContext, args []string) error{
	"cat": func(r *runner, h interp.HandlerContext, args []string) error {
		read := false
		for _, a := range args {
			if strings.HasPrefix(a, "-") && a != "-" {
				continue
			}
			read = true
			data, ok := r.result.File(a)
			if !ok {
				var err error
				if data, err = r.readBeside(clean(a)); err != nil {
					continue
				}
			}
			h.Stdout.Write(data)
		}
		if !read && h.Stdin != nil {
			io.Copy(h.Stdout, io.LimitReader(h.Stdin, maxOutput))
		}
		return nil
	},
	"tee": func(r *runner, h interp.HandlerContext, args []string) error {
		if h.Stdin == nil {
			return nil
		}
		data, err := io.ReadAll(io.LimitReader(h.Stdin, maxOutput))
		for _, a := range args {
			if !strings.HasPrefix(a, "-") {
				r.result.Files[clean(a)] = data
			}
		}
		h.Stdout.Write(data)
		return err
	},
	"mktemp": func(r *runner, h interp.HandlerContext, _ []string) error {
		r.temps++
		fmt.Fprintf(h.Stdout, "/tmp/tmp.%d\n", r.temps)
		return nil
	},
	"dirname":  onPath(path.Dir),
	"basename": onPath(path.Base),
	"seq": func(_ *runner, h interp.HandlerContext, args []string) error {
		first, last := 1, 0
		var err error
		if len(args) > 1 {
			first, err = strconv.Atoi(args[0])
		}
		if len(args) > 0 && err == nil {
			last, err = strconv.Atoi(args[len(args)-1])
		}
		const most = 1024
		if err != nil || last-first > most {
			return errors.New("seq: numbers are wanted")
		}
		for i := first; i <= last; i++ {
			fmt.Fprintln(h.Stdout, i)
		}
		return nil
	},
	"sleep": nothing, "mkdir": nothing, "rm": nothing, "chmod": nothing, "kill": nothing, "curl": nothing,
	"grep": nothing, "nvidia-smi": nothing, "date": nothing, "hostname": nothing, "clear": nothing,
}

func nothing(*runner, interp.HandlerContext, []string) error { return nil }

func onPath(f func(string) string) func(*runner, interp.HandlerContext, []string) error {
	return func(_ *runner, h interp.HandlerContext, args []string) error {
		if len(args) > 0 {
			fmt.Fprintln(h.Stdout, f(args[0]))
		}
		return nil
	}
}
