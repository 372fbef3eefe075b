package main

import (
	"context"
	"net/http"
	"time"
)

// maxStall is how long a stalled answer holds its connection, if the client
// does not leave first.
const maxStall = 5 * time.Minute

// delivery is how the bytes of an answer are sent.
type delivery struct {
	fault string
	write int // bytes at a time; 0 is each piece as it is
	pause time.Duration
}

// send sends pieces, each at once. An answer with a fault ends in the middle of
// its bytes: it is cut off, so that the client sees it break, or it stalls. An
// answer that cannot be sent whole is cut off too.
func (d delivery) send(ctx context.Context, w http.ResponseWriter, all [][]byte) {
	breaks := d.fault == faultCut || d.fault == faultStall
	if breaks {
		all = firstHalf(all)
	}
	flusher := http.NewResponseController(w)
	for _, piece := range all {
		for len(piece) > 0 {
			n := len(piece)
			if d.write > 0 {
				n = min(n, d.write)
			}
			if _, err := w.Write(piece[:n]); err != nil {
				panic(http.ErrAbortHandler)
			}
			if flusher.Flush() != nil || !sleep(ctx, d.pause) {
				panic(http.ErrAbortHandler)
			}
			piece = piece[n:]
		}
	}
	if d.fault == faultStall {
		sleep(ctx, maxStall)
	}
	if breaks {
		panic(http.ErrAbortHandler)
	}
}

// firstHalf is the first half of the bytes.
func firstHalf(all [][]byte) [][]byte {
	left := 0
	for _, piece := range all {
		left += len(piece)
	}
	left /= 2
	var half [][]byte
	for _, piece := range all {
		piece = piece[:min(len(piece), left)]
		half = append(half, piece)
		left -= len(piece)
	}
	return half
}

// sleep waits, and is false where ctx ended first: the client left, or the
// program stops.
func sleep(ctx context.Context, d time.Duration) bool {
	if d == 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
