package turns

import (
	"context"

	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/upstream"
)

// Requested is a request as a face has read it from its body.
type Requested interface {
	// Model is the one that is requested.
	Model() string
}

// Begin admits the caller, then reads the body of a request, which came over a wire, and opens its
// run. Nothing of the body is looked at before the caller is admitted. The errors are those of the
// executor, of read and of Open.
func Begin[R Requested](ctx context.Context, o Options, received server.Request, wire upstream.Wire, read func(body []byte) (R, error)) (*Run, R, error) {
	var none R
	admission, err := o.Executor.Admit(ctx, received.Request)
	if err != nil {
		return nil, none, err
	}
	request, err := read(received.Body)
	if err != nil {
		return nil, none, err
	}
	r, err := o.Open(received, admission, wire, request.Model())
	return r, request, err
}
