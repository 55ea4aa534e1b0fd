package api

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Port is an open port.
type Port struct {
	net.Listener
	// Replica is the number of the replica that it serves, from 1; 0 means that requests go through the routers.
	Replica int32
}

// maxPorts is the largest number of ports of a range.
const maxPorts = 4096

// ParsePorts reads a range of ports, such as 8001-8008, or a single one.
func ParsePorts(text string) (first, last int, err error) {
	from, to, isRange := strings.Cut(text, "-")
	if !isRange {
		to = from
	}
	first, err1 := strconv.Atoi(from)
	last, err2 := strconv.Atoi(to)
	if err1 != nil || err2 != nil || first < 1 || last > 65535 || last < first || last-first >= maxPorts {
		return 0, 0, fmt.Errorf("%s is not a range of ports (want for example 8001-8008)", nameOf(text))
	}
	return first, last, nil
}

// Listen opens one port whose requests go through the scenario's routers. The address is host:port.
func Listen(address string) ([]Port, error) {
	l, err := open(address)
	if err != nil {
		return nil, err
	}
	return []Port{{Listener: l}}, nil
}

// ListenEach opens a port for each replica: the first port for replica 1, and so on.
func ListenEach(host string, first, replicas int) ([]Port, error) {
	var list []Port
	for i := range replicas {
		l, err := open(net.JoinHostPort(host, strconv.Itoa(first+i)))
		if err != nil {
			for _, p := range list {
				p.Close()
			}
			return nil, err
		}
		list = append(list, Port{l, int32(i) + 1})
	}
	return list, nil
}

func open(address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	switch {
	case err == nil:
		return l, nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%s is in use by another program (want a free port)", address)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("%s needs more rights (want a port above 1023)", address)
	}
	var op *net.OpError
	if errors.As(err, &op) {
		err = op.Err
	}
	return nil, fmt.Errorf("%s cannot be opened: %w (want host:port)", address, err)
}

// Exposed reports whether other machines can reach an address.
func Exposed(address net.Addr) bool {
	t, ok := address.(*net.TCPAddr)
	return !ok || !t.IP.IsLoopback()
}

// Serve answers requests on the ports until ctx is done. Then it accepts none any more, and returns when the calls have
// ended, or have been cut after the grace period.
func (s *Server) Serve(ctx context.Context, ports []Port) error {
	var running sync.WaitGroup // handlers
	slots := make(chan struct{}, s.limits.Connections)
	failed := make(chan error, len(ports))
	var servers []*http.Server
	for _, p := range ports {
		h := s.Handler(p.Replica)
		x := &http.Server{
			Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				running.Add(1)
				defer running.Done()
				h.ServeHTTP(w, r)
			}),
			ReadHeaderTimeout: s.limits.HeaderTimeout, IdleTimeout: s.limits.IdleTimeout,
			MaxHeaderBytes: s.limits.Header, ErrorLog: s.log,
		}
		servers = append(servers, x)
		go func() { failed <- x.Serve(&limited{Listener: p.Listener, slots: slots}) }()
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	s.draining.Store(true)
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.limits.Grace)
	defer cancel()
	var closing sync.WaitGroup
	for _, x := range servers {
		closing.Go(func() {
			if x.Shutdown(grace) != nil {
				x.Close()
			}
		})
	}
	closing.Wait()
	running.Wait()
	return err
}

// limited is a listener with a limit of connections, which other listeners may share.
type limited struct {
	net.Listener
	slots chan struct{}
}

// Accept returns the next connection within the limit. Those beyond it get a response that says so.
func (l *limited) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case l.slots <- struct{}{}:
			return &limitedConn{Conn: c, slots: l.slots}, nil
		default:
			go refuse(c)
		}
	}
}

// limitedConn gives its slot back when it is closed.
type limitedConn struct {
	net.Conn
	slots chan struct{}
	once  sync.Once
}

func (c *limitedConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() { <-c.slots })
	return err
}

// refuse answers a connection beyond the limit and closes it.
func refuse(c net.Conn) {
	defer c.Close()
	f := failure{status: http.StatusServiceUnavailable, message: "the server has too many connections"}
	body := f.body()
	_ = c.SetDeadline(time.Now().Add(time.Second))
	fmt.Fprintf(c, "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 1\r\n"+
		"Connection: close\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.CloseWrite()
		var rest [4096]byte
		_, _ = c.Read(rest[:]) // a connection with unread data would be reset, and the response lost
	}
}
