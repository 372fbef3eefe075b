//go:build race

package ratelimit_test

// floodNames is fewer under the race detector, which makes each far dearer
// and finds nothing in a test of one goroutine.
const floodNames = 50_000
