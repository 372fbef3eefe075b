package upstream

import (
	"bytes"
	"context"
	"net/http"

	"github.com/callgate/callgate/internal/safe"
)

// Reply is a whole answer with the status 200, undecoded.
type Reply struct {
	// Header has the headers that are kept, see keptHeaders.
	Header http.Header
	Body   []byte

	secrets []string
}

// MentionsKey reports whether the operator's key stands in a text of the answer, also behind the
// escapes of JSON. A provider's error that does is not passed on.
func (r *Reply) MentionsKey(text []byte) bool { return mentions(text, r.secrets) }

// Post posts a request and returns the whole answer, of at most the upstream's MaxBody bytes. The
// error is a *refusal.Error (upstream_unavailable, upstream_timeout, overloaded, canceled) or a
// *StatusError with the provider's own answer, a 4xx or a 5xx.
func (c *Client) Post(ctx context.Context, route *Route, request Request) (reply *Reply, err error) {
	defer safe.Catch(func(panicked error) { err = refusePanic(panicked) })
	p, err := request.posting(typeJSON)
	if err != nil {
		return nil, err
	}
	a, body, err := c.receive(ctx, route, p)
	if err != nil {
		return nil, err
	}
	defer a.close()
	body = bytes.TrimPrefix(body, []byte("\xef\xbb\xbf")) // a byte order mark, which readers of JSON may ignore (RFC 8259, 8.1)
	return &Reply{Header: a.header, Body: body, secrets: a.secrets}, nil
}
