package httptool

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/callgate/callgate/internal/outbound"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/internal/refuse"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

const (
	maxTargetBytes = 8 << 10 // of the path and the query as they are sent
	maxFieldsBytes = 8 << 10 // of all header values that arguments give
)

// requestTemplate is what each attempt of a call sends.
type requestTemplate struct {
	method string
	target *url.URL
	header http.Header // of arguments
	body   []byte      // empty: none
}

// newRequestTemplate makes the request of a call. Without a method it is a POST of the
// arguments; with one, each argument has its place. An argument that does not fit is
// refused for the model, and nothing is sent.
func newRequestTemplate(target *url.URL, call tool.Call) (requestTemplate, *refusal.Error) {
	if call.Run.Method == "" {
		return requestTemplate{method: http.MethodPost, target: target, body: call.Arguments}, nil
	}
	arguments, err := rawjson.ReadMap(call.Arguments, rawjson.AnyDepth)
	if err != nil {
		return requestTemplate{}, refuse.Internal("the arguments that were judged are no JSON object")
	}
	f := requestBuilder{call: call, arguments: arguments, requestTemplate: requestTemplate{method: call.Run.Method, header: http.Header{}}}
	f.build(target)
	switch {
	case f.refused != nil:
		return requestTemplate{}, f.refused
	case f.placed < len(arguments):
		return requestTemplate{}, refuse.Unavailable("%s: an argument has no place in the request, so nothing was sent", call.Tool)
	}
	return f.requestTemplate, nil
}

// The headers that every request has. They are shared by requests, and not changed.
var (
	acceptHeader      = []string{"application/json, text/*;q=0.5"}
	encodingHeader    = []string{"identity"}
	userAgentHeader   = []string{"callgate"}
	contentTypeHeader = []string{"application/json"}
)

// newRequest makes the request of one attempt.
func (o *requestTemplate) newRequest(ctx context.Context, call *tool.Call) (*http.Request, error) {
	header := make(http.Header, 8)
	header["Accept"], header["Accept-Encoding"] = acceptHeader, encodingHeader
	header["User-Agent"] = userAgentHeader
	if len(o.body) > 0 {
		header["Content-Type"] = contentTypeHeader
	}
	if call.ID != "" {
		id := []string{call.ID}
		header["Callgate-Call-Id"] = id
		if call.Effect == "idempotent" {
			header["Idempotency-Key"] = id
		}
	}
	for name, values := range o.header {
		if _, taken := header[name]; taken {
			return nil, fmt.Errorf("the header %s is the gateway's own", name)
		}
		header[name] = values
	}
	request := outbound.RequestWith(ctx, o.method, o.target, header, nil)
	outbound.SetBody(request, o.body) // an empty one, too: net/http must not know that it is empty
	return request, nil
}
