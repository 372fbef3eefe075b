package main

import (
	"context"
	"net/http"
	"time"
)

// maxWait is the longest that /slow waits.
const maxWait = 60 * time.Second

// slow is the tool /slow. It ends early, without an answer, when the client
// leaves.
func slow(ctx context.Context, body []byte) (any, error) {
	var seconds float64
	const expected = "a number of seconds from 0 to 60"
	if err := decode(body, argument{name: "seconds", into: &seconds, expected: expected, required: true}); err != nil {
		return nil, err
	}
	if seconds < 0 || seconds > maxWait.Seconds() {
		return nil, failed(http.StatusBadRequest, "found another number; expected %s", expected)
	}
	timer := time.NewTimer(time.Duration(seconds * float64(time.Second)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return map[string]float64{"waited": seconds}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
