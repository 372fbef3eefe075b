package mcp

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/internal/safe"
	"github.com/callgate/callgate/internal/sse"
	"github.com/callgate/callgate/refusal"
)

const contentEvents = "text/event-stream"

var errWritePanicked = errors.New("writing to a stream broke off")

// writeTimeout bounds the writing of one message to a client.
const writeTimeout = 30 * time.Second

// eventStream is the response to one request over HTTP as server-sent events. It begins with
// the first notification or question to the client, and ends with the JSON-RPC response.
type eventStream struct {
	c *gin.Context

	mu     sync.Mutex
	writer *sse.Writer
	begun  bool // the head was sent, with status 200
	ending bool
	failed error
}

func newEventStream(c *gin.Context) *eventStream {
	return &eventStream{c: c, writer: sse.NewWriter(c.Writer, writeTimeout, 0)}
}

// send sends one message as an event, each with its own write timeout. The last messages
// share one timeout.
func (e *eventStream) send(line []byte, ending bool) error {
	return e.write(sse.AppendEvent(nil, "", line), ending)
}

// heartbeat sends a comment, which clients ignore.
func (e *eventStream) heartbeat() error { return e.write(sse.AppendComment(nil, "waiting"), false) }

func (e *eventStream) write(event []byte, ending bool) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.failed != nil {
		return e.failed
	}
	send := e.writer.Send
	if e.ending {
		send = e.writer.SendWithin
	}
	e.ending = ending
	if !e.begun {
		e.begun = true
		e.writer.Begin(contentEvents, "no-store")
	}
	e.failed = errWritePanicked // until the write returns
	e.failed = send(event)
	return e.failed
}

// elicitor asks the client of a request over HTTP. The client answers by other requests; while
// the call waits for them, it holds no slot that they need.
func (e *eventStream) elicitor(s *server.Server) *elicitor {
	return &elicitor{
		send:      func(line []byte) error { return e.send(line, false) },
		heartbeat: e.heartbeat,
		wait:      func(wait func(context.Context)) *refusal.Error { return s.Park(e.c, wait) },
	}
}

// pause waits for people while comments keep the connection open.
func (e *eventStream) pause(s *server.Server) func(context.Context, func(context.Context)) *refusal.Error {
	return func(_ context.Context, wait func(context.Context)) *refusal.Error {
		return s.Park(e.c, func(ctx context.Context) {
			ctx, cancel := context.WithCancel(ctx)
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				defer cancel() // the client has left
				e.sendHeartbeats(ctx)
			}()
			wait(ctx)
			cancel()
			<-ended
		})
	}
}

// sendHeartbeats sends comments until ctx ends, or one cannot be sent.
func (e *eventStream) sendHeartbeats(ctx context.Context) {
	defer safe.Discard() // the stream has failed
	beat := time.NewTicker(heartbeatInterval)
	defer beat.Stop()
	for {
		select {
		case <-beat.C:
			if e.heartbeat() != nil {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// finish ends the stream with the response, unless the client has left.
func (e *eventStream) finish(m *message, a *response) {
	if a.callID != "" {
		e.c.Header(server.HeaderCallID, a.callID) // too late for the client; the log has it
	}
	server.LogRefusal(e.c, a.refusal())
	_ = e.send(a.encode(m), true)
}
