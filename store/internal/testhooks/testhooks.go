// Package testhooks is what tests of the stores replace. Only packages below store can
// import it, so nobody else can set a hook.
package testhooks

import "time"

// Bolt are the hooks of package boltstore.
type Bolt struct {
	BeforeCommit func() error // of each transaction; its error fails the commit
}

// Redis are the hooks of package redisstore.
type Redis struct {
	Now   func() time.Time // instead of the clock of Redis; nil: that
	Lease time.Duration    // of a process; 0: the usual one
}
