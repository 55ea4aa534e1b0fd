package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// healthyAfter is how long a program may take until it is healthy.
const healthyAfter = 10 * time.Second

// server is a process of clifftop serve or record.
type server struct {
	url    string
	cmd    *exec.Cmd
	output bytes.Buffer
	begun  time.Time

	mu      sync.Mutex
	samples []sample
	done    chan struct{}
}

// sample is the use of the machine by the server at an instant.
type sample struct {
	at       time.Duration
	resident float64 // MiB
	cpu      time.Duration
}

// start starts a command that serves, on a free port, and waits until it is healthy.
func start(ctx context.Context, o *options, args ...string) (*server, error) {
	s := &server{begun: time.Now(), done: make(chan struct{})}
	s.cmd = exec.Command(o.clifftop, append(args, "--listen", "127.0.0.1:0")...)
	s.cmd.Stderr = &s.output
	pipe, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(pipe).ReadString('\n') // the address
	if s.url = strings.TrimSpace(line); err != nil {
		s.kill()
		return nil, fmt.Errorf("the server does not start: %s", s.output.String())
	}
	for time.Since(s.begun) < healthyAfter {
		if healthy(ctx, http.DefaultClient, s.url) {
			go s.sample()
			return s, nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	s.kill()
	return nil, fmt.Errorf("%s is not healthy after %v: %s", s.url, healthyAfter, s.output.String())
}

// healthy reports whether a server is.
func healthy(ctx context.Context, c *http.Client, url string) bool {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/health", nil)
	if err != nil {
		return false
	}
	r, err := c.Do(q)
	if err != nil {
		return false
	}
	_ = r.Body.Close()
	return r.StatusCode == http.StatusOK
}

// sample notes the use of the machine every second.
func (s *server) sample() {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		x, err := usageOf(s.cmd.Process.Pid)
		if err != nil {
			return // it has ended
		}
		x.at = time.Since(s.begun)
		s.mu.Lock()
		s.samples = append(s.samples, x)
		s.mu.Unlock()
		select {
		case <-tick.C:
		case <-s.done:
			return
		}
	}
}

// usage returns the samples so far.
func (s *server) usage() []sample {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.samples
}

// stop ends the server in order.
func (s *server) stop() error {
	close(s.done)
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- s.cmd.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			return fmt.Errorf("the server ended with %w: %s", err, s.output.String())
		}
		return nil
	case <-time.After(30 * time.Second):
		return errors.New("the server did not end within 30 s after SIGTERM")
	}
}

// kill ends the server if it still runs.
func (s *server) kill() {
	if s.cmd.ProcessState == nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
	}
}

// tick is the unit of processor time in /proc, which is 1/100 s on Linux.
const tick = 10 * time.Millisecond

// usageOf reads the use of the machine by a process.
func usageOf(pid int) (x sample, err error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return x, err
	}
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return x, errors.New("no VmRSS")
	}
	kib, err := strconv.ParseFloat(fields[0], 64)
	if err != nil {
		return x, err
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return x, err
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	f := strings.Fields(after) // from state, the third field; utime and stime are the 14th and 15th
	if len(f) < 13 {
		return x, errors.New("no times")
	}
	user, err := strconv.ParseInt(f[11], 10, 64)
	if err != nil {
		return x, err
	}
	system, err := strconv.ParseInt(f[12], 10, 64)
	x.resident, x.cpu = kib/1024, time.Duration(user+system)*tick
	return x, err
}
