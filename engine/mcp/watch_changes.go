package mcp

import (
	"net/http"
	"time"

	"github.com/callgate/callgate/internal/safe"
)

const (
	maxStreamBytes = 1 << 20 // bytes of one stream, after which another is opened
	firstPause     = time.Second
	maxPause       = 5 * time.Minute
)

// watchChanges keeps a stream open on which the server announces changed lists of tools:
// the response to a request, or without one, to a GET. It ends with the session, or if
// the server has no such stream.
func (r *remote) watchChanges(q *request) {
	pauses := newPauses(firstPause, maxPause)
	for {
		began := time.Now()
		if !r.readChanges(q) {
			return
		}
		if time.Since(began) > maxPause {
			pauses.Reset()
		}
		select {
		case <-r.ctx.Done():
			return
		case <-time.After(pauses.NextBackOff()):
		}
		// A change in the meantime was not announced to anybody.
		r.client.toolsChanged(r.endpoint.server, false)
	}
}

// readChanges reads one stream to its end, and reports whether to open another.
func (r *remote) readChanges(q *request) (retry bool) {
	defer safe.Catch(func(error) { retry = false })
	response, err := r.openStream(q)
	if err != nil {
		return r.ctx.Err() == nil
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK || mediaType(response.Header) != "text/event-stream" {
		return response.StatusCode >= http.StatusInternalServerError
	}
	stream := newEventReader(response.Body, maxStreamBytes)
	for {
		data, err := stream.next()
		if err != nil {
			return r.ctx.Err() == nil
		}
		m, err := readMessage(data)
		if err != nil || !m.hasMethod {
			return err == nil
		}
		r.handleNotification(m)
	}
}

func (r *remote) openStream(q *request) (*http.Response, error) {
	if q != nil {
		return r.send(r.ctx, q)
	}
	return r.get(r.ctx, "")
}
