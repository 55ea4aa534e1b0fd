package launch_test

import (
	"testing"

	"clifftop/experiments/launch"
)

// Releases before 0.8 have the V0 engine, which a scenario knows without chunked prefill.
func TestOldReleasesHaveTheirScheduler(t *testing.T) {
	for _, c := range []struct{ release, flag, policy, version string }{
		{"0.6.4", "", "vllm-v0", ""},
		{"0.7.1", "enable-chunked-prefill true", "", ""},
		{"0.8.5", "", "", "vllm-0.8"},
		{"0.15.1", "", "", "vllm-0.15"},
	} {
		s := system(nil, false)
		l := &s.Groups[0].Line
		l.Release, l.Image = c.release, "vllm/vllm-openai:v"+c.release
		if c.flag != "" {
			l.Flags = flagsOf(c.flag)
		}
		if _, err := s.Scenario(launch.ImportOptions{GPU: "h100"}); err != nil {
			t.Fatal(err)
		}
		policy, version := loaded(t, s, "engine", "policy"), loaded(t, s, "engine", "version")
		if policy != c.policy || version != c.version {
			t.Errorf("%s %s: policy %q, version %q, want %q and %q", c.release, c.flag, policy, version, c.policy, c.version)
		}
	}
}
