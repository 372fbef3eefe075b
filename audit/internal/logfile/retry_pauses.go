package logfile

import (
	"errors"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// MinPause and MaxPause are the first and the longest pause of NewPauses.
const (
	MinPause = 10 * time.Millisecond
	MaxPause = time.Second
)

// ErrBlocked says that the disk did not confirm in time.
var ErrBlocked = errors.New("the disk did not confirm the record in time")

// NewPauses are the pauses between attempts to write again after a failure. They
// double, without randomness: one process writes a file.
func NewPauses() backoff.ExponentialBackOff {
	return backoff.ExponentialBackOff{InitialInterval: MinPause, Multiplier: 2, MaxInterval: MaxPause}
}
