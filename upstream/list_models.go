package upstream

import (
	"context"
	"fmt"
	"net/http"

	"github.com/callgate/callgate/internal/safe"
	"github.com/callgate/callgate/upstream/chat"
)

// ListModels asks the upstream of a route which models it has: GET {base_url}/models, in the
// shape of OpenAI's API or of Anthropic's. Of a list in several pages it returns the first,
// which Anthropic's API is asked to make as long as it makes any (AM-05). The list is read
// strictly, and is an error as a whole if one entry has no usable id. The error is one of Post.
func (c *Client) ListModels(ctx context.Context, route *Route, anthropic bool) (models []chat.ListedModel, err error) {
	defer safe.Catch(func(panicked error) { err = refusePanic(panicked) })
	p := &posting{endpoint: listEndpoint, accept: typeJSON, get: true}
	if anthropic {
		p.query, p.header = "limit=1000", http.Header{"Anthropic-Version": {anthropicVersion}}
	}
	a, raw, err := c.receive(ctx, route, p)
	if err != nil {
		return nil, err
	}
	defer a.close()
	r := chat.NewReader()
	defer r.Release()
	models, err = r.ReadModels(raw)
	if err != nil {
		return nil, malformed(route.Upstream, fmt.Errorf("a list of models with %w", err))
	}
	return models, nil
}

// anthropicVersion is one that every server of Anthropic's API knows (AM-01). The list of models
// is the same in later ones.
const anthropicVersion = "2023-06-01"
