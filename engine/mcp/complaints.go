package mcp

import (
	"bytes"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/callgate/callgate/engine"
)

// errEnded is a program that went away.
const errEnded engine.Reason = "its program ended"

// maxComplaints bounds what is kept of what a program writes to its standard error.
const maxComplaints = 2 << 10

// complaints are the end of what a program has written to its standard error. Where the
// program ends, an operator reads there why.
type complaints struct {
	secrets []string // that are not shown
	read    chan struct{}

	mu   sync.Mutex
	kept []byte
	cut  bool // there was more before
}

// take reads to the end.
func (c *complaints) take(from io.Reader) {
	defer close(c.read)
	b := make([]byte, maxComplaints)
	for {
		n, err := from.Read(b)
		c.mu.Lock()
		c.kept = append(c.kept, b[:n]...)
		if over := len(c.kept) - maxComplaints; over > 0 {
			c.kept, c.cut = append(c.kept[:0], c.kept[over:]...), true
		}
		c.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// ended is why a session is over whose program has ended: with the last lines that it
// has written, in quotes, so that nothing in them hides.
func (c *complaints) ended() error {
	select {
	case <-c.read:
	case <-time.After(graceTime): // what it has started still writes
	}
	c.mu.Lock()
	last := bytes.Clone(c.kept)
	cut := c.cut
	c.mu.Unlock()
	if cut { // part of a line may be part of a secret
		_, last, _ = bytes.Cut(last, []byte("\n"))
	}
	said := strings.TrimSpace(string(last))
	for _, secret := range c.secrets {
		said = strings.ReplaceAll(said, secret, "[secret]")
	}
	if said == "" {
		return errEnded
	}
	return errEnded + engine.Reason("; it wrote last: "+strconv.QuoteToASCII(said))
}
