// Package ports holds ports of loopback: for a server that another process starts,
// now or later, and for an address where nobody is to listen.
//
// A port that was found free and let go can be anybody's a moment later: the tests of
// several packages run at the same time, and each asks the system for ports. One
// that is held is bound and does not listen. The system gives it to nobody who
// asks for any port and to no connection as its own; a program that names it can listen
// there, as Go, Redis and most servers do, for they reuse addresses. Until then,
// and after it has ended, connections are refused. On systems other than Linux a
// port is only found.
package ports

import (
	"errors"
	"fmt"
)

// test is what Hold needs of a test.
type test interface {
	Helper()
	Fatal(...any)
	Cleanup(func())
}

// Hold returns an address of 127.0.0.1 that is held until the test has ended.
func Hold(t test) string {
	t.Helper()
	port, release, err := Take(0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	return fmt.Sprintf("127.0.0.1:%d", port)
}

// Take holds a port of 127.0.0.1 until it is released. With beside, the port that
// is so far above it is held too.
func Take(beside int) (port int, release func(), err error) {
	for range 1000 {
		port, release, err := bind(0)
		if err != nil || beside == 0 {
			return port, release, err
		}
		if port+beside < 1<<16 {
			if _, releaseOther, err := bind(port + beside); err == nil {
				return port, func() { release(); releaseOther() }, nil
			}
		}
		defer release() // not before another was found: the same would come again
	}
	return 0, nil, errors.New("ports: there is no pair of free ports")
}
