//go:build !race

package ratelimit_test

// floodNames is how many names are made up.
const floodNames = 1_000_000
