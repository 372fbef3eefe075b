package main

import (
	"context"
	"time"
)

// clock says what time it is.
type clock func() time.Time

// tell is the tool /time.
func (c clock) tell(_ context.Context, body []byte) (any, error) {
	if err := decode(body); err != nil {
		return nil, err
	}
	now := c().UTC()
	return struct {
		UTC  string `json:"utc"`
		Unix int64  `json:"unix"`
	}{now.Format(time.RFC3339), now.Unix()}, nil
}
