// Package ports reserves loopback ports: for a server that another process starts, now or
// later, and for an address without a listener.
//
// A port that was free and is released can be taken at once: the tests of several packages
// run at the same time, and each asks the system for ports. A held port is bound and does
// not listen. The system then assigns it neither to a listener on any port nor to an
// outgoing connection; a program that names it can listen there if it reuses addresses, as
// Go, Redis and most servers do. Before that, and after the program has ended, connections
// are refused. On systems other than Linux a port is only found.
package ports

import (
	"errors"
	"fmt"
)

// test is the part of testing.TB that Hold needs.
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
