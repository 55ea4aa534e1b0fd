package live

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// clockFile is an alarm that a file descriptor of the kernel's timers rings, within some microseconds.
type clockFile struct {
	file *os.File
	fd   int
	ring chan time.Time
}

// newAlarm returns the most exact alarm that the system has.
func newAlarm() alarm {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return newTimer()
	}
	a := &clockFile{file: os.NewFile(uintptr(fd), "timerfd"), fd: fd, ring: make(chan time.Time, 1)}
	go a.wait()
	return a
}

// wait hands rings on until the file is closed.
func (a *clockFile) wait() {
	var times [8]byte // how often it rang since the last read
	for {
		if _, err := a.file.Read(times[:]); err != nil {
			return
		}
		select {
		case a.ring <- time.Now():
		default: // the goroutine of Run is about to wake
		}
	}
}

func (a *clockFile) set(d time.Duration) {
	// It fails for a closed file only.
	_ = unix.TimerfdSettime(a.fd, 0, &unix.ItimerSpec{Value: unix.NsecToTimespec(int64(max(1, d)))}, nil)
}

func (a *clockFile) rings() <-chan time.Time { return a.ring }

func (a *clockFile) close() { a.file.Close() }
