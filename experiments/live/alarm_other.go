//go:build !linux

package live

// newAlarm returns the most exact alarm that the system has.
func newAlarm() alarm { return newTimer() }
