package admin

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/callgate/callgate/internal/sse"
)

// The times of a stream of events.
const (
	eventsInterval = time.Second      // between two looks
	eventsSilence  = 15 * time.Second // after which a comment is sent, so that proxies do not cut the stream
	eventsTimeout  = 10 * time.Second // that a client has to take an event
	eventsLength   = time.Hour        // of a stream; its client comes again
)

// signs are what events tell apart. Nothing of the calls themselves is looked at.
type signs struct {
	seq         uint64
	digest      string
	faults      []string
	breakers    int
	quarantined int
	approvals   int // how often they have changed
	stops       int
	ready       bool
}

func (s *Sources) signs(ctx context.Context) signs {
	seq, _ := s.Log.Last()
	h := s.Health()
	now := signs{seq: seq, digest: h.Digest, faults: h.Faults, breakers: s.OpenBreakers(), ready: h.Ready}
	for _, server := range h.Servers {
		now.quarantined += len(server.Quarantined)
	}
	if s.StopsInForce != nil {
		now.stops = s.StopsInForce()
	}
	if s.ApprovalChanges != nil {
		now.approvals = s.ApprovalChanges(ctx)
	}
	return now
}

// changed lists the kinds of what is different.
func (before *signs) changed(now *signs) []string {
	var kinds []string
	if now.seq != before.seq {
		kinds = append(kinds, "decisions")
	}
	if now.approvals != before.approvals {
		kinds = append(kinds, "approvals")
	}
	if now.digest != before.digest || !slices.Equal(now.faults, before.faults) {
		kinds = append(kinds, "config")
	}
	if now.breakers != before.breakers || now.quarantined != before.quarantined || now.stops != before.stops || now.ready != before.ready {
		kinds = append(kinds, "standing")
	}
	return kinds
}

// events answers GET /v1/events: each event is one of decisions, approvals, config, standing.
// It looks once a second while somebody listens, so a call costs nothing more.
func (s *Sources) events(w http.ResponseWriter, r *Request) error {
	out := sse.NewWriter(w, eventsTimeout, 0)
	before := s.signs(r.Context()) // what changes after the stream has begun is told
	// The listener's deadline for reading a request would end the stream.
	if err := http.NewResponseController(w).SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	out.Begin("text/event-stream", "no-store")
	if err := out.Send(sse.AppendComment(nil, "callgate")); err != nil {
		return err
	}
	ticker := time.NewTicker(eventsInterval)
	defer ticker.Stop()
	began, sent := time.Now(), time.Now()
	for time.Since(began) < eventsLength {
		select {
		case <-r.Context().Done():
			return r.Context().Err()
		case <-ticker.C:
		}
		now := s.signs(r.Context())
		var events []byte
		for _, kind := range before.changed(&now) {
			events = sse.AppendEvent(events, "", []byte(kind))
		}
		before = now
		if len(events) == 0 {
			if time.Since(sent) < eventsSilence {
				continue
			}
			events = sse.AppendComment(nil, "still here")
		}
		if err := out.Send(events); err != nil {
			return err
		}
		sent = time.Now()
	}
	return nil
}
