package native

import (
	"context"
	"errors"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/internal/safe"
	"github.com/callgate/callgate/internal/sse"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/wrapper"
)

const (
	// heartbeat is the interval of the comments in a stream, which detect an application
	// that has disconnected.
	heartbeat = 15 * time.Second
	// writeTimeout is how long an application may take to take what it is sent.
	writeTimeout = 30 * time.Second
)

var errBrokenOff = errors.New("following a call broke off")

// events answers with the status of a call and, once it has ended, with its outcome, as
// server-sent events. The stream ends with the outcome, when the application disconnects,
// or when the server drains: then the client asks again.
func (f *Face) events(c *gin.Context, a server.Request) {
	ctx := c.Request.Context()
	follower, err := f.options.Executor.Follow(ctx, a.Request, c.Param("id"))
	if err != nil {
		Refuse(c, refusal.From(refusal.Request, err))
		return
	}
	call, err := follower.Next(ctx)
	if err != nil {
		Refuse(c, refusal.From(refusal.Request, err))
		return
	}
	server.SetHeader(c, server.HeaderCallID, call.ID)
	w := sse.NewWriter(c.Writer, writeTimeout, 0)
	w.Begin("text/event-stream; charset=utf-8", "no-cache")
	var views viewStream
	for f.event(c, w, call) && !call.Ended {
		if views.begin(follower, call); !views.send(c, w) {
			return
		}
		if call, err = f.next(c, w, follower, &views); err != nil {
			if ctx.Err() == nil {
				server.LogRefusal(c, refusal.From(refusal.Request, err))
			}
			return
		}
	}
	if call.Ended && ctx.Err() == nil {
		views.begin(follower, call)
		f.subscription(c, w, follower, call, &views)
	}
}

// subscription passes on the events of a call's tool, if it sends any, until the
// subscription ends.
func (f *Face) subscription(c *gin.Context, w *sse.Writer, follower *calls.Follower, call calls.CallStatus, views *viewStream) {
	events, stop, err := follower.Events(call)
	defer stop()
	if err != nil {
		server.LogRefusal(c, refusal.From(refusal.Request, err))
		return
	}
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	if call.Metadata.Subscribed && !views.send(c, w) {
		return
	}
	for events != nil {
		select {
		case <-views.changed:
			if !views.send(c, w) {
				return
			}
		case <-c.Request.Context().Done():
			return
		case <-beat.C:
			if w.Send(sse.AppendComment(nil, "waiting")) != nil {
				return
			}
		case e, more := <-events:
			if !more {
				return
			}
			if err := follower.CheckAccess(c.Request.Context()); err != nil {
				server.LogRefusal(c, refusal.From(refusal.Request, err))
				return
			}
			data, err := wrapper.Marshal(e)
			if err != nil || w.Send(sse.AppendEvent(nil, "subscription", data)) != nil {
				return
			}
		}
	}
}

// next waits until the status of a call changes, and keeps the stream alive meanwhile.
func (f *Face) next(c *gin.Context, w *sse.Writer, follower *calls.Follower, views *viewStream) (calls.CallStatus, error) {
	type answer struct {
		call calls.CallStatus
		err  error
	}
	ctx, cancel := context.WithCancel(c.Request.Context())
	defer cancel()
	answers := make(chan answer, 1)
	go func() {
		a := answer{err: errBrokenOff}
		defer func() { answers <- a }()
		defer safe.Catch(func(error) { a = answer{err: errBrokenOff} })
		a.call, a.err = follower.Next(ctx)
	}()
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		select {
		case a := <-answers:
			return a.call, a.err
		case <-views.changed:
			if !views.send(c, w) {
				cancel()
				views.changed = nil
			}
		case <-beat.C:
			if w.Send(sse.AppendComment(nil, "waiting")) != nil {
				cancel()
			}
		}
	}
}

// event writes the status of a call.
func (f *Face) event(c *gin.Context, w *sse.Writer, call calls.CallStatus) (ok bool) {
	data, err := wrapper.Marshal(stateOf(call))
	if err != nil {
		server.LogRefusal(c, refusal.From(refusal.Wrap, err))
		return false
	}
	return w.Send(sse.AppendEvent(nil, "state", data)) == nil
}
