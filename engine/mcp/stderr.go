package mcp

import (
	"bytes"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/callgate/callgate/internal/program"
	"github.com/callgate/callgate/internal/refuse"
)

// errProgramEnded is a program that has ended.
const errProgramEnded refuse.Reason = "its program ended"

// programEnd is the end of a program that was not ended by the gateway.
type programEnd struct{ reason refuse.Reason }

func (e *programEnd) Error() string { return string(e.reason) }

func (e *programEnd) Unwrap() error { return e.reason }

// maxStderr bounds how much of a program's standard error is kept.
const maxStderr = 2 << 10

// stderrTail keeps the end of a program's standard error. If the program ends, the
// operator reads there why.
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

// exitError says why the session of a program that has ended is over: it quotes its last
// lines, so that no character hides.
func (c *stderrTail) exitError() error {
	select {
	case <-c.done:
	case <-time.After(program.Grace): // a process that it has started still writes
	}
	c.mu.Lock()
	last := bytes.Clone(c.kept)
	cut := c.truncated
	c.mu.Unlock()
	if cut { // part of a line may be part of a secret
		_, last, _ = bytes.Cut(last, []byte("\n"))
	}
	text := c.withoutSecrets(strings.TrimSpace(string(last)))
	if text == "" {
		return &programEnd{errProgramEnded}
	}
	return &programEnd{errProgramEnded + refuse.Reason("; last output: "+strconv.QuoteToASCII(text))}
}

// maxQuotedLine bounds what is quoted of a line on standard output, in bytes.
const maxQuotedLine = 200

// quote quotes the beginning of a line for the operator. What a broken message brings is not shown.
func (c *stderrTail) quote(line []byte) string {
	shown := c.withoutSecrets(string(line))
	end := min(len(shown), maxQuotedLine)
	for _, member := range []string{`"result"`, `"params"`, `"error"`} {
		if at := strings.Index(shown, member); at >= 0 {
			end = min(end, at)
		}
	}
	if end < len(shown) {
		return strconv.QuoteToASCII(shown[:end]) + " and more"
	}
	return strconv.QuoteToASCII(shown)
}

func (c *stderrTail) withoutSecrets(text string) string {
	for _, secret := range c.secrets {
		text = strings.ReplaceAll(text, secret, "[secret]")
	}
	return text
}
