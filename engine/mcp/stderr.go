package mcp

import (
	"bytes"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/callgate/callgate/engine/internal/refuse"
)

// errProgramEnded is a program that went away.
const errProgramEnded refuse.Reason = "its program ended"

// maxStderr bounds what is kept of what a program writes to its standard error.
const maxStderr = 2 << 10

// stderrTail are the end of what a program has written to its standard error. Where the
// program ends, an operator reads there why.
type stderrTail struct {
	secrets []string // that are not shown
	done    chan struct{}

	mu        sync.Mutex
	kept      []byte
	truncated bool // there was more before
}

// read reads to the end.
func (c *stderrTail) read(from io.Reader) {
	defer close(c.done)
	b := make([]byte, maxStderr)
	for {
		n, err := from.Read(b)
		c.mu.Lock()
		c.kept = append(c.kept, b[:n]...)
		if over := len(c.kept) - maxStderr; over > 0 {
			c.kept, c.truncated = append(c.kept[:0], c.kept[over:]...), true
		}
		c.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// exitError is why a session is over whose program has ended: with the last lines that it
// has written, in quotes, so that nothing in them hides.
func (c *stderrTail) exitError() error {
	select {
	case <-c.done:
	case <-time.After(exitGrace): // what it has started still writes
	}
	c.mu.Lock()
	last := bytes.Clone(c.kept)
	cut := c.truncated
	c.mu.Unlock()
	if cut { // part of a line may be part of a secret
		_, last, _ = bytes.Cut(last, []byte("\n"))
	}
	said := strings.TrimSpace(string(last))
	for _, secret := range c.secrets {
		said = strings.ReplaceAll(said, secret, "[secret]")
	}
	if said == "" {
		return errProgramEnded
	}
	return errProgramEnded + refuse.Reason("; it wrote last: "+strconv.QuoteToASCII(said))
}
