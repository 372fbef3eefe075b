package upstream

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/callgate/callgate/internal/ascii"
	"github.com/callgate/callgate/refusal"
)

// Endpoint is a path below the base URL of an upstream.
type Endpoint string

// The endpoints that requests are posted to.
const (
	ChatCompletions Endpoint = "/chat/completions"
	Messages        Endpoint = "/messages"
	CountTokens     Endpoint = "/messages/count_tokens"
	Responses       Endpoint = "/responses"
	InputTokens     Endpoint = "/responses/input_tokens"
)

// listEndpoint is where an upstream lists its models.
const listEndpoint Endpoint = "/models"

// endpointsOf returns the URLs below a base URL that ends without a slash; none if it cannot be
// parsed.
func endpointsOf(base string) map[Endpoint]*url.URL {
	all := map[Endpoint]*url.URL{}
	for _, e := range []Endpoint{ChatCompletions, Messages, CountTokens, Responses, InputTokens, listEndpoint} {
		if target, err := url.Parse(base + string(e)); err == nil {
			all[e] = target
		}
	}
	return all
}

// Content types of answers.
const (
	typeJSON   = "application/json"
	typeStream = "text/event-stream"
)

// Values of headers that every request has.
var (
	contentJSON      = []string{typeJSON}
	identityEncoding = []string{"identity"}
	userAgent        = []string{"callgate"}
)

// ownHeaders are headers of a request that only this client sets: those of the connection, of
// the body, of what is accepted, and of credentials.
var ownHeaders = map[string]bool{
	"Accept": true, "Accept-Encoding": true, "Authorization": true, "Connection": true, "Content-Encoding": true,
	"Content-Length": true, "Content-Type": true, "Cookie": true, "Expect": true, "Host": true, "Keep-Alive": true,
	"Proxy-Authorization": true, "Proxy-Connection": true, "Te": true, "Trailer": true, "Transfer-Encoding": true,
	"Upgrade": true, "User-Agent": true, "X-Api-Key": true,
}

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
}

// posting returns the request as it is sent.
func (r Request) posting(accept string) (*posting, error) {
	if !ascii.IsVisible(r.Query) || strings.Contains(r.Query, "#") {
		const message = "Found a query with other characters than those of URLs; expected none, or one such as beta=true."
		return nil, refusal.New(refusal.BadRequest, message)
	}
	return &posting{endpoint: r.Endpoint, query: r.Query, header: r.Header, body: r.Body, accept: accept, raw: true, last: r.Last}, nil
}

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
	defer recoverPanic(&err)
	p, err := request.posting(typeJSON)
	if err != nil {
		return nil, err
	}
	a, err := c.send(ctx, route, p)
	if err != nil {
		return nil, err
	}
	defer a.close()
	body, err := a.readAll()
	if err != nil {
		return nil, transportError(a.timeouts.ctx, route.Upstream, err, true)
	}
	return &Reply{Header: a.header, Body: body, secrets: a.secrets}, nil
}

// Bounds of the headers of an answer that are kept.
const (
	maxKeptHeaders = 64
	maxHeaderValue = 1 << 10
)

// keptNames are headers of an answer for the application: what to wait for, how much is left, and
// by which id the provider knows the request. None of them names the operator's account.
var keptNames = map[string]bool{
	"Request-Id": true, "X-Request-Id": true, "Retry-After": true, "Retry-After-Ms": true, "X-Should-Retry": true,
}

// keptPrefixes are beginnings of such headers (AM-63).
var keptPrefixes = []string{"Anthropic-Ratelimit-", "X-Ratelimit-"}

// keptHeaders returns the headers of an answer that are for the application: those of keptNames
// and keptPrefixes with one value each, of at most 1,024 bytes, in which none of the secrets stands.
func keptHeaders(header http.Header, secrets []string) http.Header {
	kept := http.Header{}
	for name, values := range header {
		if len(kept) < maxKeptHeaders && len(values) == 1 && isKeptName(name) && isKeptValue(values[0], secrets) {
			kept[name] = values
		}
	}
	return kept
}

func isKeptName(name string) bool {
	if keptNames[name] {
		return true
	}
	for _, prefix := range keptPrefixes {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

func isKeptValue(value string, secrets []string) bool {
	return len(value) <= maxHeaderValue && ascii.IsPrintable(value) && !mentions([]byte(value), secrets)
}
