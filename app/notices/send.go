package notices

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/callgate/callgate/internal/duration"
	"github.com/callgate/callgate/internal/netx"
	"github.com/callgate/callgate/internal/outbound"
	"github.com/callgate/callgate/internal/webhook"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/approval"
)

// send sends one notice. It returns 0 if it was acknowledged, and else how long to wait before
// it is sent again.
func (s *Sender) send(t *target, n *store.Notice, state approval.State) (again time.Duration) {
	id, body, err := encode(&n.Approval, state, s.deps.Kernel.ApprovalURL(n.Approval.ID))
	if err != nil {
		return s.failed(id, n.Tries, 0, err.Error())
	}
	keys, err := t.Keys()
	if err != nil {
		return s.failed(id, n.Tries, 0, err.Error())
	}
	header := webhook.Headers(id, s.deps.Now(), body, keys)
	header["Content-Type"], header["User-Agent"] = []string{"application/json"}, []string{"callgate"}
	ctx, cancel := context.WithTimeout(s.sending, s.timeout)
	defer cancel()
	// With once it is sent again by this package alone.
	response, _, err := s.deps.Client.Send(outbound.RequestWith(ctx, http.MethodPost, t.URL, header, body), t.Addresses, true)
	if err != nil {
		cause := outbound.DescribeError(err)
		switch {
		case s.sending.Err() != nil:
			cause = "the gateway is stopping"
		case ctx.Err() != nil:
			cause = fmt.Sprintf("the endpoint has not answered within %s", duration.Spell(s.timeout))
		}
		return s.failed(id, n.Tries, 0, cause)
	}
	// Nothing of the body is read: it says nothing that counts.
	_ = response.Body.Close()
	switch code := response.StatusCode; {
	case code >= 200 && code <= 299:
		s.deps.Observer.NoticeEnded(Sent)
		s.reportAcknowledged(id, n.Tries)
		return 0
	case code == http.StatusGone:
		s.deps.Observer.NoticeEnded(Gone)
		if t.gone.CompareAndSwap(false, true) {
			s.deps.Log.Error("approval notices stopped: the endpoint answers 410 Gone; they start again when notify of approvals.yaml changes, or at the next start", "notice", id)
		}
		return longestPause
	case code >= 300 && code <= 399:
		return s.failed(id, n.Tries, 0, fmt.Sprintf("the endpoint answers with HTTP status %d; redirects are not followed", code))
	default:
		after := netx.RetryAfter(response.Header.Get("Retry-After"), s.deps.Now(), time.Second)
		return s.failed(id, n.Tries, after, fmt.Sprintf("the endpoint answers with HTTP status %d", code))
	}
}

// failed notes that a notice was not acknowledged, and returns how long to wait: longer if the
// endpoint asks for it.
func (s *Sender) failed(id string, tries int, retryAfter time.Duration, cause string) time.Duration {
	s.deps.Observer.NoticeEnded(Failed)
	s.report(notAcknowledged, id, cause)
	return max(pause(tries), min(retryAfter, longestPause))
}
