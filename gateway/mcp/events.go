package mcp

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/refusal"
)

const contentEvents = "text/event-stream"

var errBrokenOff = errors.New("writing to a stream broke off")

// takeTime is how long a client may take to take what it is sent.
const takeTime = 30 * time.Second

// events is the answer to one request over HTTP as a stream of server-sent events,
// where the client is told something before it: it begins with that, and ends with the
// answer.
type events struct {
	c *gin.Context

	mu     sync.Mutex
	begun  bool // the head is out, with status 200
	ending bool
	failed error
}

// send sends one message as an event. Each may take its time to be taken; what is sent
// in the end has one time together.
func (e *events) send(line []byte, ending bool) error {
	return e.write(append(append([]byte("data: "), line...), "\n\n"...), ending)
}

// beat sends a comment, which says nothing to the client.
func (e *events) beat() error { return e.write([]byte(": waiting\n\n"), false) }

func (e *events) write(event []byte, ending bool) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.failed != nil {
		return e.failed
	}
	if !e.ending {
		// A connection that cannot bear a deadline is one that a test made.
		_ = http.NewResponseController(e.c.Writer).SetWriteDeadline(time.Now().Add(takeTime))
	}
	e.ending = ending
	if !e.begun {
		e.begun = true
		e.c.Header("Content-Type", contentEvents)
		e.c.Header("Cache-Control", "no-store")
		e.c.Header("X-Accel-Buffering", "no") // proxies that would hold events back
		e.c.Status(http.StatusOK)
	}
	e.failed = errBrokenOff // where writing does not come back
	_, err := e.c.Writer.Write(event)
	if err == nil {
		e.c.Writer.Flush()
	}
	e.failed = err
	return err
}

// host is the client of a request over HTTP: it answers by requests of its own, and
// while it is waited for nothing is taken from those.
func (e *events) host(d *server.Server) *host {
	return &host{
		send: func(line []byte) error { return e.send(line, false) },
		beat: e.beat,
		wait: func(wait func(context.Context)) *refusal.Error { return d.Park(e.c, wait) },
	}
}

// answer ends the stream. A client that has left is noticed, and not told.
func (e *events) answer(m *message, a *answer) {
	if a.callID != "" {
		e.c.Header(server.HeaderCallID, a.callID) // too late for the client; the log has it
	}
	server.LogRefusal(e.c, a.refused())
	_ = e.send(a.line(m), true)
}
