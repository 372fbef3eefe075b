package upstream

import (
	"context"

	"github.com/callgate/callgate/internal/safe"
	"github.com/callgate/callgate/upstream/chat"
)

// Complete requests a completion without streaming. body is the whole JSON
// request. The error is a *refusal.Error (upstream_unavailable, upstream_timeout,
// overloaded) or a *StatusError.
func (c *Client) Complete(ctx context.Context, route *Route, body []byte) (completion *chat.Completion, err error) {
	defer safe.Catch(func(panicked error) { err = refusePanic(panicked) })
	a, raw, err := c.receive(ctx, route, &posting{endpoint: ChatCompletions, body: body, accept: typeJSON})
	if err != nil {
		return nil, err
	}
	defer a.close()
	r := chat.NewReader()
	defer r.Release()
	completion, err = r.ReadCompletion(raw)
	if err != nil {
		return nil, invalidAnswer(route.Upstream, err, a.mentionsKey)
	}
	return completion, nil
}

// Stream requests a stream, and returns it once its first byte has arrived. Its
// errors are those of Complete. Close the stream, also after its end.
func (c *Client) Stream(ctx context.Context, route *Route, body []byte) (events *Events, err error) {
	defer safe.Catch(func(panicked error) { err = refusePanic(panicked) })
	raw, err := c.openStream(ctx, route, &posting{endpoint: ChatCompletions, body: body, accept: typeStream})
	if err != nil {
		return nil, err
	}
	return &Events{stream: raw, reader: chat.NewReader()}, nil
}
