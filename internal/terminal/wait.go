package terminal

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// Wait shows what is waited for, and for how long, on a terminal, until it is stopped. What takes less
// than a second is not shown.
func Wait(w io.Writer, what string) (stop func()) {
	if !IsTerminal(w) {
		return func() {}
	}
	done := make(chan struct{})
	var shown sync.WaitGroup
	shown.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for seconds := 1; ; seconds++ {
			select {
			case <-done:
				fmt.Fprint(w, "\r\x1b[K")
				return
			case <-tick.C:
				fmt.Fprintf(w, "\r\x1b[Kwaiting for %s: %d s", what, seconds)
			}
		}
	})
	return func() { close(done); shown.Wait() }
}
