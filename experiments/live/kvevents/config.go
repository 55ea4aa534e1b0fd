package kvevents

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
)

// Config has the keys of vLLM's --kv-events-config.
type Config struct {
	// Enable publishes events; vLLM's default is false.
	Enable bool `json:"enable_kv_cache_events"`
	// Publisher is "zmq", or "null" for none. Empty is "zmq" if Enable is true.
	Publisher string `json:"publisher"`
	// Endpoint is the address of the PUB socket of the first replica, tcp://HOST:PORT. With the host * the socket
	// listens; the next replica listens on the next port. With another host it connects to the subscriber there.
	Endpoint string `json:"endpoint"`
	// ReplayEndpoint is the address on which the ROUTER socket of the first replica listens; empty is none.
	ReplayEndpoint string `json:"replay_endpoint"`
	// BufferSteps is the number of batches that can be replayed.
	BufferSteps int `json:"buffer_steps"`
	// HWM is the number of messages that wait for a subscriber; further ones are dropped.
	HWM int `json:"hwm"`
	// MaxQueueSize is the number of batches that wait to be sent; further ones are dropped.
	MaxQueueSize int `json:"max_queue_size"`
	// Topic is the first frame. In it, {replica} stands for the number of the replica, {address} for its address and
	// {model} for the model's name. llm-d expects kv@ADDRESS@MODEL.
	Topic string `json:"topic"`
	// Format is "map" or "array"; empty is "array" for replicas with SGLang's radix cache and "map" for others. vLLM
	// has no such key.
	Format string `json:"format"`
}

// Formats of events.
const (
	formatMap   = "map"
	formatArray = "array"
)

// defaultConfig returns vLLM's defaults.
func defaultConfig() Config {
	return Config{Endpoint: "tcp://*:5557", BufferSteps: 10_000, HWM: 100_000, MaxQueueSize: 100_000}
}

// Parse reads a configuration in JSON over the defaults, and validates it.
func Parse(text string) (Config, error) {
	c := defaultConfig()
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		why := err.Error()
		if typed := (*json.UnmarshalTypeError)(nil); errors.As(err, &typed) {
			why = fmt.Sprintf("%s is a %s (want a %s)", typed.Field, typed.Value, typed.Type.Kind())
		}
		return c, fmt.Errorf("KV events: %s; write a JSON map such as %s", strings.TrimPrefix(why, "json: "), sample)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return c, fmt.Errorf("KV events: text after the JSON map; write one map such as %s", sample)
	}
	return c, c.Validate()
}

const sample = `{"enable_kv_cache_events": true, "endpoint": "tcp://*:5557", "topic": "kv@{address}@{model}"}`

// Enabled reports whether events are published.
func (c *Config) Enabled() bool { return c.Publisher == "zmq" || c.Publisher == "" && c.Enable }

// Validate reports the first fault.
func (c *Config) Validate() error {
	switch c.Publisher {
	case "", "zmq", "null":
	default:
		return fmt.Errorf("KV events: publisher %q is unknown: write zmq or null", c.Publisher)
	}
	if _, err := parseEndpoint("endpoint", c.Endpoint); err != nil {
		return err
	}
	if c.ReplayEndpoint != "" {
		e, err := parseEndpoint("replay_endpoint", c.ReplayEndpoint)
		if err != nil {
			return err
		}
		if pub, _ := parseEndpoint("", c.Endpoint); pub.listens() && pub.port == e.port {
			return fmt.Errorf("KV events: replay_endpoint %q has the port of endpoint %q: write another port",
				c.ReplayEndpoint, c.Endpoint)
		}
	}
	for _, n := range []struct {
		key   string
		value int
	}{{"buffer_steps", c.BufferSteps}, {"hwm", c.HWM}, {"max_queue_size", c.MaxQueueSize}} {
		if n.value < 1 || n.value > most {
			return fmt.Errorf("KV events: %s %d: write a number from 1 to %d", n.key, n.value, most)
		}
	}
	if len(c.Topic) > 1000 {
		return fmt.Errorf("KV events: topic has %d bytes: write at most 1000", len(c.Topic))
	}
	switch c.Format {
	case "", formatMap, formatArray:
		return nil
	}
	return fmt.Errorf("KV events: format %q is unknown: write map or array", c.Format)
}

// most limits the lengths of queues.
const most = 10_000_000

// endpoint is an address of the first replica.
type endpoint struct {
	host string // "*" for that of the server
	port int
}

func parseEndpoint(key, text string) (e endpoint, err error) {
	fault := fmt.Errorf("KV events: %s %q: write tcp://*:PORT to listen, or tcp://HOST:PORT", key, text)
	address, ok := strings.CutPrefix(text, "tcp://")
	if !ok {
		return e, fault
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil || host == "" {
		return e, fault
	}
	e.host = host
	if e.port, err = strconv.Atoi(port); err != nil || e.port < 1 || e.port > 65535 {
		return e, fault
	}
	return e, nil
}

// listens reports whether a PUB socket listens there.
func (e endpoint) listens() bool { return e.host == "*" || strings.Contains(e.host, "::") }

// of returns the address for a replica. host replaces *.
func (e endpoint) of(replica int, host string) (string, error) {
	if e.host != "*" {
		host = e.host
	}
	port := e.port
	if e.listens() {
		port += replica
	}
	if port > 65535 {
		return "", fmt.Errorf("KV events: replica %d would have port %d: write a lower port", replica, port)
	}
	return net.JoinHostPort(host, strconv.Itoa(port)), nil
}
