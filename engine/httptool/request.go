package httptool

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/callgate/callgate/engine/internal/refuse"
	"github.com/callgate/callgate/engine/outbound"
	"github.com/callgate/callgate/internal/strictjson"
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

	authorization string // of the tool, not of a caller; empty: none
}

// newRequestTemplate makes the request of a call. Without a method it is a POST of the
// arguments; with one, each argument has its place. An argument that does not fit is
// refused for the model, and nothing is sent.
func newRequestTemplate(target *url.URL, call tool.Call) (*requestTemplate, *refusal.Error) {
	if call.Run.Method == "" {
		return &requestTemplate{method: http.MethodPost, target: target, body: call.Arguments}, nil
	}
	arguments, err := strictjson.Object(call.Arguments, strictjson.AnyDepth)
	if err != nil {
		return nil, refuse.Internal("the arguments that were judged are no JSON object")
	}
	f := requestBuilder{call: call, arguments: arguments, requestTemplate: requestTemplate{method: call.Run.Method, header: http.Header{}}}
	f.build(target)
	switch {
	case f.refused != nil:
		return nil, f.refused
	case f.placed < len(arguments):
		return nil, refuse.Unavailable("%s: an argument has no place in the request, so nothing was sent", call.Tool)
	}
	return &f.requestTemplate, nil
}

// newRequest makes the request of one attempt.
func (o *requestTemplate) newRequest(ctx context.Context, call tool.Call) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, o.method, o.target.String(), nil)
	if err != nil {
		return nil, err
	}
	request.Header = o.header.Clone()
	if request.Header == nil {
		request.Header = http.Header{}
	}
	own := func(name, value string) {
		if _, taken := request.Header[name]; taken {
			err = fmt.Errorf("the header %s is the gateway's own", name)
		}
		request.Header.Set(name, value)
	}
	own("Accept", "application/json, text/*;q=0.5")
	own("Accept-Encoding", "identity")
	own("User-Agent", "callgate")
	outbound.SetBody(request, o.body)
	if len(o.body) > 0 {
		own("Content-Type", "application/json")
	}
	if o.authorization != "" {
		own("Authorization", o.authorization)
	}
	if call.ID != "" {
		own("Callgate-Call-Id", call.ID)
		if call.Effect == "idempotent" {
			own("Idempotency-Key", call.ID)
		}
	}
	return request, err
}
