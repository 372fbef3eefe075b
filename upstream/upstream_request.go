package upstream

import (
	"net/http"
	"strings"

	"github.com/callgate/callgate/internal/ascii"
	"github.com/callgate/callgate/refusal"
)

// Request is one request to an upstream, in any wire.
type Request struct {
	Endpoint Endpoint
	// Query goes into the URL as it is, such as beta=true (AM-05); empty for none.
	Query string
	// Header goes to the provider, but for the headers that the client sets itself and those of
	// credentials. The caller bounds it.
	Header http.Header
	Body   []byte // JSON
	// Last reports whether the data of an event is that of the last one of the wire: it is
	// complete even where the body ends before the empty line behind it. Nil: none is, but [DONE].
	Last func(data []byte) bool
	// Meter bounds what the request takes; nil: nothing does.
	Meter Meter
}

// posting returns the request as it is sent.
func (r Request) posting(accept string) (*posting, error) {
	if !ascii.IsVisible(r.Query) || strings.Contains(r.Query, "#") {
		const message = "Found a query with other characters than those of URLs; expected none, or one such as beta=true."
		return nil, refusal.New(refusal.BadRequest, message)
	}
	return &posting{endpoint: r.Endpoint, query: r.Query, header: r.Header, body: r.Body, accept: accept, last: r.Last, meter: r.Meter}, nil
}

// posting is one request as it is sent, in each attempt the same.
type posting struct {
	endpoint Endpoint
	query    string
	header   http.Header // beside those that the client sets itself
	body     []byte
	accept   string // the content type of the answer
	get      bool   // the method is GET, without a body
	// last and meter are those of Request.
	last  func(data []byte) bool
	meter Meter
}
