// Package parallel says how many parallel tests of a package run at the same time. go
// test runs one for each core, which is right for tests that compute.
package parallel

import (
	"flag"
	"runtime"
	"strconv"
)

// perCore is how many parallel tests that wait run for each core.
const perCore = 2

// Waiting is for TestMain of a package whose parallel tests wait for processes, disks
// and timeouts more than they compute: two run for each core, unless go test -parallel
// says how many.
func Waiting() {
	// The flags of the command line are parsed by m.Run, later than this.
	if err := flag.Set("test.parallel", strconv.Itoa(perCore*runtime.GOMAXPROCS(0))); err != nil {
		panic(err) // it is not called by a test program
	}
}
