package scenario

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"clifftop/experiments/scenario/yamldoc"
)

// Setting sets one key of a scenario from outside the file.
type Setting struct {
	// Key is a dotted path; a number is an index into a list.
	Key string `json:"key"`
	// Value is YAML. A map replaces the whole map.
	Value string `json:"value"`
	// Flag names the flag that gave the setting, for messages; empty is --set KEY.
	Flag string `json:"flag,omitempty"`
}

// ParseSetting reads KEY=VALUE.
func ParseSetting(s string) (Setting, error) {
	key, value, ok := strings.Cut(s, "=")
	if !ok || key == "" {
		return Setting{}, yamldoc.Faults{{Where: "--set",
			Problem: fmt.Sprintf("%q is not a setting (want KEY=VALUE)", yamldoc.Short(s))}}
	}
	if strings.TrimSpace(value) == "" {
		return Setting{}, yamldoc.Faults{{Where: "--set", Key: key,
			Problem: "the value is empty (want KEY=VALUE; null is the default)"}}
	}
	return Setting{Key: key, Value: value}, nil
}

// The keys that stand for a load, whatever the scenario's traffic is.
const (
	// RateKey sets the mean rate of requests and keeps the process; a trace is thinned or superposed.
	RateKey = "rate"
	// UsersKey sets the number of users of a closed loop, and makes one of any other process.
	UsersKey = "users"
	// BurstinessKey makes the arrivals a gamma process and keeps the rate. The value is the shape of the gaps between
	// arrivals, as in vllm bench serve --burstiness: 1 is Poisson, less comes in bursts, more is more regular.
	BurstinessKey = "burstiness"
)

func (s Setting) flag() string {
	if s.Flag != "" {
		return s.Flag
	}
	return "--set " + s.Key
}

// apply changes the tree. Keys and values are checked later, with the whole.
func apply(root *yamldoc.Node, s Setting) *yamldoc.Fault {
	at := yamldoc.Place{Origin: s.flag()}
	value, err := yamldoc.Parse(at.Origin, []byte(s.Value), true)
	if err != nil {
		fs := err.(yamldoc.Faults)
		fs[0].Key = s.Key
		return fs[0]
	}
	if root.Kind != yamldoc.Map {
		return nil // the file is wrong as a whole, which is reported
	}
	if s.Key == BurstinessKey {
		if value, err = gammaCV(value, at); err != nil {
			return &yamldoc.Fault{Where: at.Origin, Key: s.Key, Problem: err.Error()}
		}
	}
	key, err := s.keyIn(root, at)
	if err == nil {
		err = root.Set(key, at, value)
	}
	if err != nil {
		return &yamldoc.Fault{Where: at.Origin, Key: s.Key, Problem: err.Error()}
	}
	return nil
}

// keyIn is the dotted path that a setting means in a tree. What does not go with it there is taken out.
func (s Setting) keyIn(root *yamldoc.Node, at yamldoc.Place) (string, error) {
	switch s.Key {
	case RateKey:
		return rateKey(root)
	case UsersKey:
		return usersKey(root, at)
	case BurstinessKey:
		return burstinessKey(root, at)
	case "workload.trace.file":
		if s.Flag == "--trace" {
			for _, name := range besideTrace { // which a trace brings itself
				root.MapAt("workload", at).Put(name, at, nil)
			}
		}
	}
	return s.Key, nil
}

// rateKey is the key under which the traffic has its mean rate.
func rateKey(root *yamldoc.Node) (string, error) {
	if trace := root.Lookup("workload", "trace"); trace != nil {
		if trace.Kind == yamldoc.Map {
			trace.Put("scale", yamldoc.Place{}, nil)
		}
		return "workload.trace.rate", nil
	}
	arrivals := root.Lookup("workload", "arrivals")
	switch process := root.Lookup("workload", "arrivals", "process"); {
	case arrivals == nil:
	case arrivals.Kind == yamldoc.List:
		return "", errors.New("the arrivals are a list of phases, each with its own rate (set " +
			"workload.arrivals.0.rate, for example)")
	case process != nil && process.Text == "closed", root.Lookup("workload", "arrivals", "users") != nil:
		return "", errors.New("a closed loop has users instead of a rate (set users, or another " +
			"workload.arrivals.process)")
	case process != nil && process.Text == "all-at-once":
		return "", errors.New("requests that arrive all at once have no rate (set another workload.arrivals.process)")
	}
	return "workload.arrivals.rate", nil
}

// usersKey is the key of the number of users; arrivals that are no closed loop are replaced by one.
func usersKey(root *yamldoc.Node, at yamldoc.Place) (string, error) {
	if root.Lookup("workload", "trace") != nil {
		return "", errors.New("a trace has its own arrivals (set workload.trace.rate or workload.trace.scale)")
	}
	process := root.Lookup("workload", "arrivals", "process")
	if process == nil && root.Lookup("workload", "arrivals", "users") == nil || process != nil &&
		process.Text != "closed" {
		closed := &yamldoc.Node{At: at, Kind: yamldoc.Map}
		closed.Put("process", at, &yamldoc.Node{At: at, Kind: yamldoc.Text, Text: "closed"})
		root.MapAt("workload", at).Put("arrivals", at, closed)
	}
	return "workload.arrivals.users", nil
}

// burstinessKey is the key of the coefficient of variation of gamma gaps. Arrivals of another process are replaced by
// gamma arrivals with the same rate.
func burstinessKey(root *yamldoc.Node, at yamldoc.Place) (string, error) {
	if root.Lookup("workload", "trace") != nil {
		return "", errors.New("a trace has its own arrivals (want a workload without a trace)")
	}
	rate, err := rateKey(root)
	if err != nil {
		return "", err
	}
	given := root.Lookup(strings.Split(rate, ".")...)
	gamma := &yamldoc.Node{At: at, Kind: yamldoc.Map}
	gamma.Put("process", at, &yamldoc.Node{At: at, Kind: yamldoc.Text, Text: "gamma"})
	if given != nil {
		gamma.Put("rate", given.At, given)
	}
	root.MapAt("workload", at).Put("arrivals", at, gamma)
	return "workload.arrivals.cv", nil
}

// gammaCV is the coefficient of variation of gamma gaps with a shape. The shapes allowed belong to a coefficient
// from 0.01 to 100.
func gammaCV(shape *yamldoc.Node, at yamldoc.Place) (*yamldoc.Node, error) {
	x, err := strconv.ParseFloat(shape.Text, 64)
	if err != nil || !(x >= leastShape && x <= mostShape) {
		return nil, fmt.Errorf("%s is not allowed (want %g to %g; 1 is Poisson, less comes in bursts)",
			yamldoc.Short(shape.Text), leastShape, mostShape)
	}
	return yamldoc.Parse(at.Origin, []byte(strconv.FormatFloat(1/math.Sqrt(x), 'f', -1, 64)), true)
}

const leastShape, mostShape = 1e-4, 1e4
